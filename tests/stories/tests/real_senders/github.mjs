// Signs a body as GitHub does, by its own library: header and body, a line each.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.PACKAGES + "/");
const { Webhooks } = await import(pathToFileURL(require.resolve("@octokit/webhooks")).href);

const webhooks = new Webhooks({ secret: process.env.SECRET });
const body = JSON.stringify({ ref: "refs/heads/main", n: 1.5, name: "café", id: process.argv[2] });
console.log(await webhooks.sign(body));
console.log(body);
