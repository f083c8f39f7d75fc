// An app on Slack's official JavaScript framework: answers mentions, opens a modal, takes its submission.
// node bolt.mjs FOLDER (socket | PORT)

import { createRequire } from 'node:module';
import { join } from 'node:path';

const [folder, way] = process.argv.slice(2);
const { App, LogLevel, SocketModeReceiver } = createRequire(join(folder, 'package.json'))('@slack/bolt');
const clientOptions = { slackApiUrl: process.env.SLACK_URL };
const common = { token: process.env.BOT_TOKEN, clientOptions, logLevel: LogLevel.ERROR };

function app() {
  if (way !== 'socket') return new App({ ...common, signingSecret: process.env.SIGNING_SECRET });
  const receiver = new SocketModeReceiver({
    appToken: process.env.APP_TOKEN,
    logLevel: LogLevel.ERROR,
    installerOptions: { clientOptions },
  });
  receiver.client.webClient.slackApiUrl = process.env.SLACK_URL;
  return new App({ ...common, receiver });
}

const bolt = app();

bolt.event('app_mention', async ({ event, client }) => {
  await client.chat.postMessage({
    channel: event.channel,
    thread_ts: event.ts,
    text: `hello, <@${event.user}>`,
    blocks: [{
      type: 'actions',
      elements: [{ type: 'button', action_id: 'more', value: '1', text: { type: 'plain_text', text: 'More' } }],
    }],
  });
});

bolt.action('more', async ({ ack, body, client }) => {
  await ack();
  await client.views.open({
    trigger_id: body.trigger_id,
    view: {
      type: 'modal',
      callback_id: 'why',
      private_metadata: `${body.channel.id} ${body.message.ts}`,
      title: { type: 'plain_text', text: 'Why' },
      submit: { type: 'plain_text', text: 'Deny' },
      blocks: [{
        type: 'input',
        block_id: 'why',
        label: { type: 'plain_text', text: 'Reason' },
        element: { type: 'plain_text_input', action_id: 'text' },
      }],
    },
  });
});

bolt.view('why', async ({ ack, view, client }) => {
  await ack();
  const [channel, ts] = view.private_metadata.split(' ');
  await client.chat.update({ channel, ts, text: `denied: ${view.state.values.why.text.value}`, blocks: [] });
});

await bolt.start(way === 'socket' ? undefined : Number(way));
