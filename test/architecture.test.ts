import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checkCatalog } from "../src/catalog/file.ts";
import { COMMANDS } from "../src/cli/commands.ts";
import { PUBLIC_VARIABLES } from "../src/config-table.ts";
import { migrations } from "../src/db/migrations/list.ts";
import { MANAGEMENT_ROUTES } from "../src/management/management-routes.ts";
import { bagProblems } from "./support/dependency-bags.ts";
import {
	budgetProblems,
	codeBlocks,
	consoleProblems,
	environmentProblems,
	importCycles,
	importsOf,
	LAYERS,
	layerProblems,
	lengthProblems,
	markdownTable,
	missingPaths,
	nameProblems,
	orderProblems,
	paperProblems,
	placeProblems,
	type SourceFile,
	sharedProblems,
	stateProblems,
	wordProblems,
} from "./support/source-rules.ts";

const ROOT = join(import.meta.dir, "..");
const read = (path: string): SourceFile => ({ path, text: readFileSync(join(ROOT, path), "utf8") });
const scan = (pattern: string) =>
	[...new Bun.Glob(pattern).scanSync({ cwd: ROOT, dot: true })]
		.filter((path) => !/(^|\/)node_modules\/|^(\.git|\.data|dist)\//.test(path))
		.sort();

const source = scan("src/**/*.{ts,tsx}")
	.filter((path) => !path.endsWith(".d.ts"))
	.map(read);
/** All Markdown files except benchmark results and the console's documentation pages. */
const papers = scan("**/*.md")
	.filter((path) => !path.startsWith("test/bench/results/") && !path.startsWith("src/web/docs/"))
	.map(read);
const made = (path: string, text: string): SourceFile => ({ path, text });

describe("the source", () => {
	test("imports only from lower rooms", () => expect(orderProblems(source)).toEqual([]));
	test("puts each folder of src in the lowest layer that its imports allow", () =>
		expect(layerProblems(source)).toEqual([]));
	test("has no import cycles, types included", () => expect(importCycles(source)).toEqual([]));
	test("lets pages import only one file of the console", () => expect(sharedProblems(source)).toEqual([]));
	test("reads environment variables only in config.ts", () => expect(environmentProblems(source)).toEqual([]));
	test("writes to standard output and standard error only in main.ts", () =>
		expect(consoleProblems(source)).toEqual([]));
	test("has no banned words in comments or papers", () => {
		const functions = scan("src/db/functions/*.sql").map(read);
		const made = (path: string) => path.includes("/results/");
		expect(wordProblems([...source, ...functions, ...papers.filter(({ path }) => !made(path))])).toEqual([]);
	});
	test("has Markdown documents of at most 250 lines of 120 characters", () => {
		expect(paperProblems(papers.filter(({ path }) => !path.includes("/results/")))).toEqual([]);
		const made = (text: string) => paperProblems([{ path: "a.md", text }]);
		expect(made("x\n".repeat(251))).toEqual(["a.md has 251 lines"]);
		expect(made(`| ${"x".repeat(130)} |\n[a](${"x".repeat(130)})\n${"x".repeat(121)}\n`)).toEqual([
			"a.md:3 has 121 characters",
		]);
	});
	test("has no file over its maximum length", () => expect(lengthProblems(source)).toEqual([]));
	// Longer than the default of 5 s, because a busy machine needs more to search all source files.
	test("has no object of more than eight dependencies", () => expect(bagProblems(source)).toEqual([]), 60_000);
	test("has no index.ts barrels and no utility files", () => expect(nameProblems(source)).toEqual([]));
	test("has a named state in each closure that changes six variables", () => expect(stateProblems(source)).toEqual([]));

	test("lists every migration in order", () => {
		const folder = readdirSync(join(ROOT, "src/db/migrations")).filter((name) => name.endsWith(".sql"));
		expect(migrations.map(({ name }) => `${name}.sql`)).toEqual(folder.sort());
		for (const { name, sql } of migrations) expect(sql).toBe(read(`src/db/migrations/${name}.sql`).text);
	});

	test("lists the rooms in src/README.md in the order of the layers", () => {
		const rows = markdownTable(read("src/README.md").text, "## Rooms").map(([rooms = ""]) => rooms.split(", "));
		expect(rows.map((rooms) => rooms.map((room) => room.replace(/\/$|\.ts$/, "")))).toEqual(
			LAYERS.map((line) => [...line]),
		);
	});

	test("has at most the budgeted lines in each room, and budgets that sum to the total", () => {
		const rows = markdownTable(read("src/README.md").text, "## Budget of lines");
		const budget = new Map(rows.map(([room = "", lines = ""]) => [room, Number(lines.replaceAll(",", ""))]));
		const sum = budget.get("src") ?? 0;
		budget.delete("src");
		expect(budgetProblems(source, budget)).toEqual([]);
		expect(sum).toBe([...budget.values()].reduce((all, lines) => all + lines, 0));
	});

	test("documents each management route", () => {
		const rows = markdownTable(read("src/management/README.md").text, "## Routes and scopes");
		expect(rows).toEqual(
			Object.values(MANAGEMENT_ROUTES).map(({ method, path, scope, summary }) => [
				`${method} ${path.replace("/v1/management", "")}`,
				scope ?? "any",
				summary.replaceAll("`", ""),
			]),
		);
	});

	test("documents each environment variable with its default", () => {
		const rows = markdownTable(read("src/cli/README.md").text, "## Environment");
		expect(rows).toEqual(PUBLIC_VARIABLES.map((variable) => [variable.name, variable.default, variable.meaning]));
	});

	test("documents for each database table how its rows are removed", () => {
		const rows = markdownTable(read("src/db/README.md").text, "### Which rows are removed");
		// The table of applied migrations is made by `create table if not exists`, the others by `pgTable`.
		const tables = source.flatMap(({ path, text }) => {
			const pattern = path.endsWith(".sql.ts") ? /pgTable\(\s*"(\w+)"/g : /create table if not exists (\w+)/g;
			return [...text.matchAll(pattern)].map(([, name = ""]) => name);
		});
		expect(rows.flatMap(([names = ""]) => names.split(", ")).sort()).toEqual(tables.sort());
		expect(rows.filter(([, row, removed]) => !row || !removed)).toEqual([]);
	});

	test("has only valid catalogues in its Markdown files", () => {
		const blocks = papers.flatMap(({ text }) => codeBlocks(text, "yaml"));
		expect(blocks.length).toBeGreaterThan(3);
		for (const block of blocks) expect(checkCatalog(block, { VLLM_API_KEY: "key" })).toMatchObject({ ok: true });
	});

	test("documents every command", () => {
		const section = read("src/cli/README.md").text.split("## Command line")[1]?.split("\n## ")[0] ?? "";
		const lines = section.split("\n").map((line) => line.trim());
		const named = (name: string) => {
			const [group = "", verb] = name.split(" ");
			return lines.some(
				(line) => new RegExp(`^${group}\\b`).test(line) && (!verb || new RegExp(`\\b${verb}\\b`).test(line)),
			);
		};
		expect(COMMANDS.map(({ name }) => name).filter((name) => !named(name))).toEqual([]);
	});

	test("has a main README of at most 150 lines of 120 characters", () => {
		const lines = read("README.md").text.trimEnd().split("\n");
		expect(lines.length).toBeLessThanOrEqual(150);
		expect(lines.filter((line) => line.length > 120)).toEqual([]);
	});

	test("has each file that a Markdown file links to or names", () => {
		const exists = (path: string) => existsSync(join(ROOT, path));
		expect(papers.flatMap((paper) => missingPaths(paper, exists))).toEqual([]);
	});

	test("uses images, actions and Bun pinned by hash only", () => {
		const uses = scan(".github/workflows/*.yml").flatMap((path) => read(path).text.match(/(?<=uses: ).*/g) ?? []);
		expect(uses.filter((use) => !/^[\w/-]+@[0-9a-f]{40} # v/.test(use))).toEqual([]);
		expect(uses.length).toBeGreaterThan(0);
		const { packages } = JSON.parse(read(".ci/bun/package-lock.json").text);
		const { "": _own, ...locked } = packages as Record<string, { version: string; integrity?: string }>;
		for (const { version, integrity } of Object.values(locked))
			expect([version, integrity]).toEqual([Bun.version, expect.stringMatching(/^sha512-/)]);
		expect(read("Dockerfile").text).toContain("RUN npm ci --prefix /opt/bun");
		const bases = read("Dockerfile")
			.text.split("\n")
			.filter((line) => line.startsWith("FROM "));
		expect(bases.length).toBe(2);
		for (const base of bases) expect(base).toMatch(/^FROM [^$@]+:[^$@]+@sha256:[0-9a-f]{64}( AS \w+)?$/);
	});

	test("contains no address of a package registry and no local path", () => {
		const texts = scan("**/*.{ts,tsx,sql,json,md,yaml,yml,toml,lock,css,html}")
			.concat(scan("{Dockerfile,.dockerignore,.gitignore,.ci/*,LICENSE}"))
			.filter((path) => !/^test\/(architecture\.test|support\/source-rules)\.ts$/.test(path));
		expect(texts).toContain("bun.lock");
		expect(placeProblems(texts.map(read))).toEqual([]);
	});
});

describe("the architecture test reports", () => {
	test("an import of a higher room, in each form of import", () => {
		const text = [
			'import a from "./a.ts";',
			'import type { B } from "../base/b.ts";',
			'import {\n\ttype C,\n\tc,\n} from "../keys/c.ts";',
			'export { d } from "./d.ts";',
			'import "./e.ts";',
			'const f = await import("./f.ts");',
			'const i = require("./i.ts");',
			"const j = await import(`./j.ts`);",
			'import g from "package";',
			'// import h from "./h.ts";',
		].join("\n");
		expect(importsOf(made("src/db/x.ts", text)).toSorted()).toEqual([
			"src/base/b.ts",
			"src/db/a.ts",
			"src/db/d.ts",
			"src/db/e.ts",
			"src/db/f.ts",
			"src/db/i.ts",
			"src/db/j.ts",
			"src/keys/c.ts",
		]);
	});

	test("a closure that changes six variables without named states", () => {
		const closure = (count: number, more = "") => {
			const names = Array.from({ length: count }, (_, nth) => `v${nth}`);
			const lets = names.map((name) => `let ${name} = 0;`).join("");
			return made(
				"src/a.ts",
				`function createA() { ${more} return () => { ${names.map((name) => `${name}++;`).join("")} }; ${lets} }`,
			);
		};
		expect(stateProblems([closure(5)])).toEqual([]);
		expect(stateProblems([closure(6)])).toEqual(["src/a.ts: createA changes v0, v1, v2, v3, v4, v5"]);
		expect(stateProblems([closure(6, 'const states = createStates(TRANSITIONS, "idle");')])).toEqual([]);
		const local = "function a() { let a, b, c, d, e, f; a = b = c = d = e = f = 1; return () => a; }";
		expect(stateProblems([made("src/a.ts", local)])).toEqual([]);
	});

	test("an object of more than eight dependencies, also in Pick and intersection types", () => {
		const names = (count: number, letter = "m") => Array.from({ length: count }, (_, n) => `${letter}${n}`);
		const members = (count: number, letter?: string) =>
			names(count, letter)
				.map((name) => `${name}: string;`)
				.join(" ");
		const bag = `interface LargeDeps { ${members(9)} }\ninterface MoreDeps extends SmallDeps { own: string }\ninterface SmallDeps { ${members(8)} }`;
		const found = (code: string) => bagProblems([made("src/keys/a.ts", `${bag}\n${code}`)]);
		const pick = names(9)
			.map((name) => JSON.stringify(name))
			.join(" | ");
		expect(found("function make(deps: LargeDeps) {}")).toEqual(["src/keys/a.ts: make takes 9 members of LargeDeps"]);
		expect(found("const make = ({ m1 }: MoreDeps) => m1;")).toEqual([
			"src/keys/a.ts: make takes 9 members of MoreDeps",
		]);
		expect(found(`function make(deps: Pick<LargeDeps, ${pick}>) {}`)).toHaveLength(1);
		expect(found("function make(deps: SmallDeps & { own: string }) {}")).toHaveLength(1);
		expect(found('function make(deps: SmallDeps, others: Omit<LargeDeps, "m0">) {}')).toEqual([]);
		expect(found(`function make(deps: Pick<LargeDeps, "m0" | "m1">) {}`)).toEqual([]);
	});

	test("a file that a Markdown file names but that does not exist", () => {
		const there = ["src/keys/secret.ts", "src/db/README.md", "src/keys"];
		const found = (text: string) => missingPaths(made("src/db/README.md", text), (path) => there.includes(path));
		const fine = "[a](README.md#b), `../keys/secret.ts`, [c](https://example.org/d.md), `src/keys/`, `tollgate.yaml`";
		expect(found(fine)).toEqual([]);
		expect(found("`../keys/gone.ts`, [e](gone.md), `src/gone/`, `*.sql.ts`, ![f](g.webp)")).toEqual([
			"src/db/README.md names src/keys/gone.ts",
			"src/db/README.md names src/gone",
			"src/db/README.md names src/db/gone.md",
			"src/db/README.md names src/db/g.webp",
		]);
	});
});
