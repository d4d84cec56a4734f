import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";

const { OPENAI_BASE_URL: apiBase, OPENAI_API_KEY: apiKey, MODEL: model } = process.env;
const models = [{ name: "local", provider: "openai", model, apiBase, apiKey, roles: ["chat"] }];
writeFileSync("config.yaml", JSON.stringify({ name: "c", version: "1.0.0", schema: "v1", models }));
const { stdout, stderr } = spawnSync("node_modules/.bin/cn", ["-p", "--config", "config.yaml", "What time is it?"], {
	encoding: "utf8",
	timeout: 120_000,
});
const said = stdout.trim() || stderr.trim().split("\n").at(-1) || "nothing";
console.log(`@@${JSON.stringify(["stream", said.slice(0, 160)])}`);
