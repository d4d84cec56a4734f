import { spawnSync } from "node:child_process";

const { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey, MODEL } = process.env;
const local = { npm: "@ai-sdk/openai-compatible", options: { baseURL, apiKey }, models: { [MODEL]: {} } };
const config = { provider: { local }, share: "disabled", autoupdate: false };
const { stdout, stderr } = spawnSync(
	"node_modules/.bin/opencode",
	["run", "-m", `local/${MODEL}`, "What time is it?"],
	{ encoding: "utf8", env: { ...process.env, OPENCODE_CONFIG_CONTENT: JSON.stringify(config) }, timeout: 120_000 },
);
const said = stdout.trim() || stderr.trim().split("\n").at(-1) || "nothing";
console.log(`@@${JSON.stringify(["stream", said.slice(0, 160)])}`);
