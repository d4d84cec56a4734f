import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { checkCatalog, parseCatalogFile } from "../../src/catalog/file.ts";
import { formatCatalogFile } from "../../src/cli/init-command.ts";
import { demoModelSpec } from "../../src/demo/found-model.ts";
import { jsonServer, temporaryFolder } from "../support/at-end.ts";
import { quickFolder } from "../support/memory-folder.ts";
import { PROGRAM, runCli } from "./run-cli.ts";

const folder = temporaryFolder(quickFolder());
const list = (...data: unknown[]) => ({ object: "list", data });
const ports = [
	{ "/v1/models": list({ id: "Qwen/Qwen3-8B", owned_by: "vllm", max_model_len: 32_768 }) },
	{ "/v1/models": list({ id: "llama3.2:3b" }, { id: "nomic-embed-text:latest" }), "/api/version": { version: "0.9" } },
	{ "/v1/models": list({ id: '/srv/models/tiny "one".gguf', owned_by: "llamacpp" }), "/props": { n_ctx: 4096 } },
]
	.map((answers) => jsonServer(answers))
	.join(",");

const init = (...args: string[]) => runCli(["init", ...args], {}, folder);
const read = (name: string) => readFileSync(join(folder, name), "utf8");

describe("the command `init`", () => {
	test("writes a valid file with the model servers that answered", async () => {
		const written = await init("--ports", ports, "--json");
		expect(written).toMatchObject({ exitCode: 0, stderr: "" });
		const ids = ["Qwen/Qwen3-8B", "llama3.2:3b", "nomic-embed-text:latest", "tiny--one-"];
		expect(written.json().models).toMatchObject(ids.map((id) => ({ id })));
		const { models, warnings } = parseCatalogFile(read("tollgate.yaml"), {});
		expect(warnings).toEqual([]);
		const [qwen, llama, nomic, tiny] = models;
		expect(qwen).toMatchObject({ kind: "chat", contextLength: 32_768, maxOutputTokens: 8192 });
		expect(qwen?.upstreams[0]).toMatchObject({ dialect: "vllm", keepAlive: false, model: "Qwen/Qwen3-8B" });
		expect(llama?.upstreams[0]).toMatchObject({ dialect: "ollama", model: "llama3.2:3b" });
		expect(nomic?.kind).toBe("embedding");
		expect(tiny?.upstreams[0]).toMatchObject({ dialect: "llama.cpp", model: '/srv/models/tiny "one".gguf' });
		const checked = await runCli(["catalog", "check", "tollgate.yaml"], {}, folder);
		expect([checked.exitCode, checked.stdout.split("\n")[0]]).toEqual([0, expect.stringContaining("4 models")]);
	});

	test("overwrites a file only with --force, and never through a link", async () => {
		writeFileSync(join(folder, "mine.yaml"), "mine");
		symlinkSync(join(folder, "nowhere"), join(folder, "link.yaml"));
		for (const name of ["mine.yaml", "link.yaml"]) {
			const refused = await init(name, "--ports", "1");
			expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining("--force")]);
		}
		expect(read("mine.yaml")).toBe("mine");
		expect(existsSync(join(folder, "nowhere"))).toBe(false);
		expect((await init("mine.yaml", "--ports", "1", "--force")).exitCode).toBe(0);
		expect(checkCatalog(read("mine.yaml"), {})).toMatchObject({ ok: true, models: [] });
		expect(readdirSync(folder).sort()).toEqual(["link.yaml", "mine.yaml", "tollgate.yaml"]);
	});

	test("leaves no partial file on a full disk, and does not change an existing file", async () => {
		writeFileSync(join(folder, "kept.yaml"), "models: []\n");
		for (const words of [["cut.yaml"], ["kept.yaml", "--force"]]) {
			const child = Bun.spawn(
				["sh", "-c", `trap '' XFSZ; ulimit -f 0; exec "$@"`, "sh", ...PROGRAM, "init", ...words, "--ports", "1"],
				{ cwd: folder, env: { PATH: process.env.PATH ?? "" }, stdio: ["ignore", "pipe", "pipe"] },
			);
			expect(await new Response(child.stderr).text()).toContain("EFBIG");
			expect(await child.exited).toBe(1);
		}
		expect(readdirSync(folder).filter((name) => name.startsWith("cut") || name.startsWith("kept"))).toEqual([
			"kept.yaml",
		]);
		expect(read("kept.yaml")).toBe("models: []\n");
	}, 20_000);

	test("writes a valid file with examples as comments if no server answered", async () => {
		const written = await init("empty.yaml", "--ports", "1");
		expect([written.exitCode, written.stdout]).toEqual([0, expect.stringContaining("No model server answered")]);
		const text = read("empty.yaml");
		expect(checkCatalog(text, {})).toMatchObject({ ok: true, models: [] });
		const filledIn = text.replace("models: []", "models:").replaceAll(/^#( |limits)/gm, "$1");
		const uncommented = filledIn.replaceAll(/^ (?=Limits|The|`tollgate|catalogue|No model).*$/gm, "");
		expect(checkCatalog(uncommented, {})).toMatchObject({ ok: true, models: [{ id: "llama-3.3-70b-instruct" }] });
	});

	test("refuses an invalid port as a usage error", async () => {
		for (const wrong of ["0", "a", "80,", "70000"]) expect((await init("x.yaml", "--ports", wrong)).exitCode).toBe(2);
	});
});

test("writes a valid file whatever name a server gives its model", () => {
	const name = fc.string({ minLength: 1, maxLength: 60, unit: "grapheme" }).filter((text) => !text.includes("${"));
	const servable = name.filter((text) => text.trim() === text && !/\p{Cc}/u.test(text));
	fc.assert(
		fc.property(servable, fc.constantFrom("chat" as const, "embedding" as const), (served, kind) => {
			const upstream = { url: "http://127.0.0.1:8000/v1", model: served, dialect: "vllm" } as const;
			const sizes = { contextLength: 4096, maxOutputTokens: 1024 };
			const spec = demoModelSpec({ id: "m", name: served, kind, modes: ["chat"], parameters: [], upstream, ...sizes });
			const [model] = parseCatalogFile(formatCatalogFile({ servers: [], models: [spec], ports: [] }), {}).models;
			expect(model).toMatchObject({ name: served, upstreams: [{ model: served }] });
		}),
	);
});
