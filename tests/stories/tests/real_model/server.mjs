// A small real model behind an OpenAI-compatible address on loopback: node server.mjs FOLDER
// FOLDER holds node_modules/node-llama-cpp and, somewhere below, a GGUF file. Prints its base URL when it is ready.
import { createServer } from "node:http";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const files = readdirSync(folder, { recursive: true }).map(String);
const gguf = files.find((file) => file.endsWith(".gguf"));
const { getLlama, LlamaChatSession } = await import(
  pathToFileURL(join(folder, "node_modules/node-llama-cpp/dist/index.js")).href
);
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error" });
const model = await llama.loadModel({ modelPath: join(folder, gguf) });
const context = await model.createContext({ contextSize: 2048, threads: 1 });

// What a message says, whatever form it has; the small window holds only the beginning of a long one.
const text = (message) => {
  const content = message?.content ?? "";
  return (typeof content === "string" ? content : content.map((part) => part.text ?? "").join("\n")).slice(0, 1500);
};

createServer(async (request, response) => {
  if (request.method === "GET") {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ object: "list", data: [{ id: "small", object: "model" }] }));
    return;
  }
  let body = "";
  for await (const chunk of request) body += chunk;
  const { messages } = JSON.parse(body);
  const sequence = context.getSequence();
  const session = new LlamaChatSession({ contextSequence: sequence, systemPrompt: "You are a helpful assistant." });
  response.setHeader("content-type", "text/event-stream");
  const send = (choice, usage) => response.write(`data: ${JSON.stringify({
    id: "small", object: "chat.completion.chunk", created: 0, model: "small", choices: choice ? [choice] : [], usage,
  })}\n\n`);
  const asked = messages.filter((message) => message.role === "user").at(0);
  await session.prompt(text(asked), {
    maxTokens: 48,
    onTextChunk: (content) => send({ index: 0, delta: { role: "assistant", content }, finish_reason: null }),
  });
  const used = sequence.nextTokenIndex;
  send({ index: 0, delta: {}, finish_reason: "stop" });
  send(null, { prompt_tokens: used, completion_tokens: 1, total_tokens: used + 1 });
  response.end("data: [DONE]\n\n");
  session.dispose();
  sequence.dispose();
}).listen(0, "127.0.0.1", function () {
  console.log(`http://127.0.0.1:${this.address().port}/v1`);
});
