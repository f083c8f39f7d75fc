"""An app on Slack's official Python client: answers mentions, opens a modal, and checks what it is refused."""

import os
import threading

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler
from slack_sdk.socket_mode import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse

URL = os.environ["SLACK_URL"]
web = WebClient(token=os.environ["BOT_TOKEN"], base_url=URL)
done = threading.Event()
failed = []


def refused(error, method, **args):
    try:
        method(**args)
    except SlackApiError as refusal:
        assert refusal.response["error"] == error, (error, refusal.response["error"])
        return refusal.response
    raise AssertionError(f"{error} was expected")


def check():
    me = web.auth_test()
    assert me["user_id"] == "U0BOT" and me["bot_id"], me
    assert "chat:write" in me.headers["x-oauth-scopes"], me.headers
    limited = WebClient(token=os.environ["BOT_TOKEN"], base_url=URL)
    limited.retry_handlers.append(RateLimitErrorRetryHandler(max_retry_count=1))
    assert limited.chat_postMessage(channel="C1", text="after the limit")["ok"]
    refused("not_in_channel", web.chat_postMessage, channel="C2", text="hi")
    refused("channel_not_found", web.chat_postMessage, channel="C9", text="hi")
    refused("no_text", web.chat_postMessage, channel="C1", text="")
    refused("invalid_auth", WebClient(token="xoxb-other", base_url=URL).auth_test)
    refused("not_allowed_token_type", web.apps_connections_open, app_token=os.environ["BOT_TOKEN"])
    refused("invalid_blocks", web.chat_postMessage, channel="C1", text="x", blocks=[
        {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}])
    refused("invalid_trigger_id", web.views_open, trigger_id="1.2.3", view=modal("C1", "1"))
    refused("message_not_found", web.chat_update, channel="C1", ts="1.2", text="x")
    refused("user_not_in_channel", web.chat_postEphemeral, channel="C1", user="UNOBODY", text="x")
    members = [member["id"] for page in web.users_list(limit=1) for member in page["members"]]
    assert sorted(members) == ["U0BOT", "UADA", "UEVE"], members
    thread = web.chat_postMessage(channel="C1", text="a thread")
    web.chat_postMessage(channel="C1", text="in it", thread_ts=thread["ts"])
    replies = web.conversations_replies(channel="C1", ts=thread["ts"])["messages"]
    assert [reply["text"] for reply in replies] == ["a thread", "in it"], replies
    assert web.conversations_history(channel="C1", limit=1)["messages"][0]["text"] == "a thread"
    direct = web.conversations_open(users="UADA")["channel"]["id"]
    assert web.chat_postMessage(channel="UADA", text="psst")["channel"] == direct
    web.reactions_add(channel="C1", timestamp=thread["ts"], name="eyes")
    refused("already_reacted", web.reactions_add, channel="C1", timestamp=thread["ts"], name="eyes")


def modal(channel, ts):
    return {
        "type": "modal", "callback_id": "why", "private_metadata": f"{channel} {ts}",
        "title": {"type": "plain_text", "text": "Why"}, "submit": {"type": "plain_text", "text": "Deny"},
        "blocks": [{
            "type": "input", "block_id": "why", "label": {"type": "plain_text", "text": "Reason"},
            "element": {"type": "plain_text_input", "action_id": "text"},
        }],
    }


def hello(event):
    web.chat_postMessage(
        channel=event["channel"], thread_ts=event["ts"], text=f"hello, <@{event['user']}>",
        blocks=[{"type": "actions", "elements": [
            {"type": "button", "action_id": "more", "value": "1", "text": {"type": "plain_text", "text": "More"}}]}])


seen = set()


def listen(client, request):
    client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
    payload = request.payload
    if request.type == "events_api" and payload["event"]["type"] == "app_mention":
        if payload["event_id"] in seen:
            return
        seen.add(payload["event_id"])
        if "check" not in payload["event"]["text"]:
            return hello(payload["event"])
        try:
            check()
        except BaseException as error:
            failed.append(error)
        done.set()
    elif request.type == "interactive" and payload["type"] == "block_actions":
        web.views_open(trigger_id=payload["trigger_id"], view=modal(payload["channel"]["id"], payload["message"]["ts"]))
    elif request.type == "interactive" and payload["type"] == "view_submission":
        channel, ts = payload["view"]["private_metadata"].split()
        reason = payload["view"]["state"]["values"]["why"]["text"]["value"]
        web.chat_update(channel=channel, ts=ts, text=f"denied: {reason}", blocks=[])


client = SocketModeClient(app_token=os.environ["APP_TOKEN"], web_client=web, ping_interval=1)
client.socket_mode_request_listeners.append(listen)
client.connect()
done.wait(50)
client.close()
for error in failed:
    raise error
assert done.is_set(), "nobody asked for the check"
os._exit(0)
