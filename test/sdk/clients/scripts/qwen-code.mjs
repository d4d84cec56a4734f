import { spawnSync } from "node:child_process";

const { MODEL } = process.env;
const { stdout, stderr } = spawnSync(
	"node_modules/.bin/qwen",
	["--auth-type", "openai", "-m", MODEL, "-p", "What time is it?"],
	{ encoding: "utf8", timeout: 120_000 },
);
const said = stdout.trim() || stderr.trim().split("\n").at(-1) || "nothing";
console.log(`@@${JSON.stringify(["stream", said.slice(0, 160)])}`);
