/**
 * Runs client programs against a scripted model server, directly and through the service, and writes `../results.md`:
 *
 *   bun run clients              all: some minutes and gigabytes
 *   bun run clients -- WORD…     only ids that contain a word; other rows stay
 *
 * Programs are installed once, each in a folder below `node_modules/.cache`. Exit code 1 if a program gets something
 * else through the service than directly.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chatModel, startService } from "../../support/service.ts";
import { reply, startUpstream } from "../../support/upstream-server.ts";
import { CLIENTS, type Client } from "./clients.ts";

const CACHE = join(import.meta.dir, "../../../node_modules/.cache/clients");
const RESULTS = join(import.meta.dir, "../results.md");
const INSTALL_MS = 900_000;
const PLAY_MS = 180_000;
/** Fields that every chat has, so they are not reported. */
const USUAL = new Set(["model", "messages"]);

type Row = readonly [client: string, sent: string, direct: string, through: string];

const words = process.argv.slice(2);
const rows = new Map(readRows().map((row) => [row[0].split(" ")[0], row]));
const upstream = startUpstream({ dialect: "vllm" });
upstream.decide(({ tools, messages }) => {
	const hasResult = (messages as { role: string }[]).some(({ role }) => role === "tool");
	const names = (tools as { function?: { name: string } }[] | undefined)?.map((tool) => tool.function?.name ?? "");
	const name = hasResult ? undefined : names?.find((one) => one.endsWith("get_time"));
	return name === undefined ? reply().text("Salt and pepper.") : reply().toolCall(name, { city: "Paris" });
});
const service = await startService({ models: chatModel({ url: upstream.url, dialect: "vllm" }) });
let failed = 0;
try {
	for (const client of CLIENTS.filter(({ id }) => words.length === 0 || words.some((word) => id.includes(word)))) {
		const row = await rowOf(client);
		if (row[2] !== row[3] && row[3] !== "as direct") failed += 1;
		rows.set(client.id, row);
		writeRows();
		console.log(row.join(" | "));
	}
} finally {
	await service.stop();
	await upstream.stop();
}
process.exit(failed === 0 ? 0 : 1);

async function rowOf(client: Client): Promise<Row> {
	const head = `${client.id} (${client.packages.join(", ")})`;
	const problem = await installed(client);
	if (problem !== undefined) return [head, "–", `not played: ${problem}`, "–"];
	const before = upstream.requests.length;
	const direct = await played(client, upstream.url, "none");
	const sent = new Set(
		upstream.requests.slice(before).flatMap(({ body }) => Object.keys(body).filter((name) => !USUAL.has(name))),
	);
	const { secret } = await service.customer();
	const through = await played(client, `${service.url}/v1`, secret);
	return [head, [...sent].toSorted().join(" "), direct, through === direct ? "as direct" : through];
}

/** What is wrong with the client's installation; undefined if nothing is. */
async function installed({ id, registry, packages }: Client): Promise<string | undefined> {
	const folder = join(CACHE, id);
	const mark = join(folder, "installed");
	if (existsSync(mark) && readFileSync(mark, "utf8").trim() === packages.join(" ")) return undefined;
	mkdirSync(folder, { recursive: true });
	const uv = ["bin/uv", "pip", "install", "--quiet", "--python", "bin/python"];
	const lines = {
		PyPI: [
			["python3", "-m", "venv", "."],
			["bin/pip", "install", "--quiet", "uv==0.13.9"],
			[...uv, ...packages],
		],
		npm: [["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", ...packages]],
		Maven: [["mvn", "--batch-mode", "--quiet", "dependency:copy-dependencies", "-DoutputDirectory=lib"]],
	};
	if (registry === "npm") writeFileSync(join(folder, "package.json"), '{"private":true,"type":"module"}');
	if (registry === "Maven") writeFileSync(join(folder, "pom.xml"), pomOf(packages));
	for (const line of lines[registry]) {
		const { code, text } = await ran(line, folder, {}, INSTALL_MS);
		if (code !== 0) return text.trim().split("\n").at(-1)?.slice(0, 160) ?? "no message";
	}
	writeFileSync(mark, packages.join(" "));
	return undefined;
}

/** Runs the client's script; returns the results of its cases, joined by `; `. */
async function played({ id, registry }: Client, url: string, key: string): Promise<string> {
	const folder = join(CACHE, id);
	const script = join(import.meta.dir, "scripts", `${id}.${{ PyPI: "py", npm: "mjs", Maven: "java" }[registry]}`);
	// A script finds npm packages only from its own folder, so it is copied to the packages' folder.
	const file = registry === "npm" ? join(folder, `${id}.mjs`) : script;
	if (registry === "npm") writeFileSync(file, readFileSync(script));
	const env = {
		OPENAI_BASE_URL: url,
		OPENAI_API_KEY: key,
		MODEL: "test-model",
		PYTHONPATH: import.meta.dir,
		HOME: folder,
	};
	// With `-P`, Python does not import from the scripts' folder, in which scripts have the names of packages.
	const programs = {
		PyPI: [join(folder, "bin/python"), "-P"],
		npm: ["node"],
		Maven: ["java", "--class-path", join(folder, "lib/*")],
	};
	const { text } = await ran([...programs[registry], file], folder, env, PLAY_MS);
	const cases = [...text.matchAll(/^@@(.*)$/gm)].map(([, json]) => JSON.parse(json as string) as [string, string]);
	if (cases.length === 0) return `no result: ${text.trim().split("\n").at(-1)?.slice(0, 160) ?? ""}`;
	return cases.map(([name, value]) => `${name}: ${value.replaceAll(url, "URL").replaceAll(/[|\n]/g, " ")}`).join("; ");
}

function pomOf(packages: readonly string[]): string {
	const dependencies = packages.map((name) => {
		const [group, artifact, version] = name.split(":");
		return `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency>`;
	});
	return `<project><modelVersion>4.0.0</modelVersion><groupId>client</groupId><artifactId>client</artifactId>
<version>1</version><dependencies>${dependencies.join("")}</dependencies></project>`;
}

async function ran(command: readonly string[], cwd: string, env: Record<string, string>, timeout: number) {
	const all = { ...Bun.env, ...env, OTEL_SDK_DISABLED: "true", NO_COLOR: "1" };
	const child = Bun.spawn([...command], { cwd, env: all, stdin: "ignore", stdout: "pipe", stderr: "pipe", timeout });
	const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
	return { code: await child.exited, text: `${err}\n${out}` };
}

function readRows(): Row[] {
	const lines = existsSync(RESULTS) ? readFileSync(RESULTS, "utf8").split("\n") : [];
	const cells = lines.filter((line) => line.startsWith("| ")).map((line) => line.slice(2, -2).split(" | "));
	return cells.filter((row) => row.length === 4 && row[0] !== "client") as unknown as Row[];
}

function writeRows(): void {
	const shown = CLIENTS.map(({ id }) => rows.get(id)).filter((row) => row !== undefined);
	writeFileSync(
		RESULTS,
		`# Real clients, directly and through the service

Written by \`bun run clients\`. Each program sends a chat, a streamed chat and a tool call to a scripted vLLM server.
*Sent* are the fields of its requests besides \`model\` and \`messages\`.

| client | sent | direct | through |
|---|---|---|---|
${shown.map((row) => `| ${row.join(" | ")} |`).join("\n")}
`,
	);
}
