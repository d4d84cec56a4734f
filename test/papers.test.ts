/** Tables in Markdown files must equal the source: a change of the source requires a change of the table. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BRAND_FIELDS } from "../src/catalog/brand-section.ts";
import { MODEL_FIELDS } from "../src/catalog/model-section.ts";
import { ROUTE_FIELDS } from "../src/catalog/routes.ts";
import { DEFAULT_LIMITS, LIMIT_FIELDS } from "../src/catalog/service-limits.ts";
import { UPSTREAM_FIELDS } from "../src/catalog/upstream-section.ts";
import { ERRORS } from "../src/gateway/error-body.ts";
import { openapiDocument } from "../src/gateway/openapi/openapi.ts";
import { ATTACKERS } from "./attack/attackers.ts";
import { CONSOLE_ATTACKERS } from "./attack/console-attackers.ts";
import { markdownTable } from "./support/source-rules.ts";

const SOURCE = join(import.meta.dir, "../src");
const paper = (path: string) => readFileSync(join(SOURCE, path), "utf8");
const rowsOf = (path: string, heading: string) => markdownTable(paper(path), heading);
/** Names in a table's cell, separated by commas. */
const listed = (cell = "") => cell.split(", ").filter(Boolean);
const firsts = (rows: readonly string[][]) => rows.flatMap(([first]) => listed(first));

test("the papers describe exactly the fields of models, upstreams, routes and brand", () => {
	const models = rowsOf("catalog/README.md", "### Models");
	expect(firsts(models).sort()).toEqual([...MODEL_FIELDS].sort());
	const upstreams = paper("catalog/README.md").match(/^\| `upstreams` .*$/m)?.[0] ?? "";
	for (const name of UPSTREAM_FIELDS) expect(upstreams).toContain(`\`${name}\``);
	expect(firsts(rowsOf("catalog/README.md", "### Routes"))).toEqual([...ROUTE_FIELDS]);
	expect(firsts(rowsOf("catalog/README.md", "### Brand")).sort()).toEqual([...BRAND_FIELDS].sort());
});

test("the papers describe each limit with its default, in the template's order", () => {
	const rows = rowsOf("catalog/README.md", "### Limits");
	expect(rows.map(([name, value]) => [name, Number(value)])).toEqual(
		LIMIT_FIELDS.map(({ name, limit, scale }) => [name, DEFAULT_LIMITS[limit] / scale]),
	);
	for (const [at, { meaning }] of LIMIT_FIELDS.entries())
		expect(rows[at]?.[2]).toStartWith(meaning.replaceAll("`", ""));
});

test("the papers list each error code once with its status", () => {
	const table = rowsOf("gateway/README.md", "## Errors").flatMap(([statuses, codes = ""]) =>
		(codes.match(/\b[a-z]+(?:_[a-z]+)+\b|\b(?:forbidden|conflict|overloaded)\b/g) ?? [])
			.filter((code) => code in ERRORS)
			.map((code) => [code, listed(statuses).includes(String(ERRORS[code as keyof typeof ERRORS].status))]),
	);
	expect(table.sort()).toEqual(
		Object.keys(ERRORS)
			.map((code) => [code, true])
			.sort(),
	);
});

test("the table of endpoints has each path with its methods", () => {
	const told = rowsOf("gateway/README.md", "## Endpoints").flatMap(([methods, paths]) =>
		listed(paths).map((path) => [path.replaceAll(/\{[^}]+\}/g, "{}"), listed(methods)] as const),
	);
	const paths = Object.entries(openapiDocument().paths as Record<string, object>).filter(
		([path]) => path.startsWith("/v1/") && !path.startsWith("/v1/management"),
	);
	expect(paths.length).toBeGreaterThan(12);
	for (const [path, operations] of paths) {
		const methods = told.filter(([each]) => each === path.replaceAll(/\{[^}]+\}/g, "{}")).flatMap(([, each]) => each);
		for (const method of Object.keys(operations))
			expect([path, methods]).toEqual([path, expect.arrayContaining([method.toUpperCase()])]);
	}
});

test("the table of SQL functions lists each file of functions", () => {
	const files = readdirSync(join(SOURCE, "db/functions")).filter((name) => name.endsWith(".sql"));
	expect(firsts(rowsOf("db/README.md", "## Functions")).sort()).toEqual(
		files.map((name) => `functions/${name}`).sort(),
	);
});

test("the list of database tables has each schema file, which has the listed tables", () => {
	const rows = rowsOf("db/README.md", "## Schema");
	const files = [...new Bun.Glob("**/*.sql.ts").scanSync(SOURCE)].sort();
	const named = rows.map(
		([tables = "", where = ""]) => [listed(tables), where.match(/[\w./-]+\.sql\.ts/g) ?? []] as const,
	);
	expect(named.flatMap(([, paths]) => paths.map((path) => path.replace("../", ""))).sort()).toEqual(files);
	for (const [tables, paths] of named) {
		const text = paths.map((path) => paper(path.replace("../", ""))).join("\n");
		for (const table of tables.filter((name) => /^[a-z_]+$/.test(name) && name.includes("_")))
			expect([table, text.includes(`"${table}"`)]).toEqual([table, true]);
	}
});

test("src/README.md links the README of each room", () => {
	const papers = [...new Bun.Glob("*/**/README.md").scanSync(SOURCE)].sort();
	expect(papers.filter((path) => !paper("README.md").includes(`](${path})`))).toEqual([]);
});

test("papers that say prompts are not stored mention batch files and encrypted answers", () => {
	for (const [path, says] of [
		["../SECURITY.md", "prompts and answers"],
		["console/README.md", "No prompt and no answer"],
		["files/README.md", "neither prompts nor answers"],
	] as const) {
		const said = paper(path)
			.split(/\n\n/)
			.map((paragraph) => paragraph.replaceAll("\n", " "))
			.filter((paragraph) => paragraph.includes(says))
			.join("\n");
		expect(said).toMatch(/batches/);
		expect(said).toContain("`Idempotency-Key`");
	}
});

test("each constant in SECURITY.md has the value of the named source file", () => {
	const named = [...paper("../SECURITY.md").matchAll(/([^|]*?)\(`(src\/[^`]+\.ts)`\)/g)].flatMap(
		([, text = "", file = ""]) =>
			[...text.matchAll(/`([A-Z]+_[A-Z_]+_MAX)` (\d+)/g)].map(
				([, name, value]) => [file, `const ${name} = ${value};`] as const,
			),
	);
	expect(named.length).toBeGreaterThanOrEqual(4);
	for (const [file, line] of named) expect([file, paper(`../${file}`).includes(line)]).toEqual([file, true]);
});

test("each shared resource in SECURITY.md has a test, and its limits have their values", () => {
	const security = readFileSync(join(SOURCE, "../SECURITY.md"), "utf8");
	const rows = security.split("\n").filter((line) => /^\|.*`src\/[\w./-]+`( *)\|$/.test(line));
	let seen = 0;
	for (const row of rows) {
		const sources = [...row.matchAll(/`(src\/[\w./-]+)`/g)].map(([, path = ""]) => paper(path.slice("src/".length)));
		for (const [, name = "", value = ""] of row.matchAll(/`(\w+)` (\d[\d.,]*)/g)) {
			const field = LIMIT_FIELDS.find((one) => one.name === name);
			const stated = Number(value.replaceAll(",", ""));
			const ofSource = sources.flatMap((source) => source.match(new RegExp(`const ${name} = ([\\d_]+);`))?.[1] ?? []);
			const actual = field ? DEFAULT_LIMITS[field.limit] / field.scale : Number(ofSource[0]?.replaceAll("_", ""));
			expect([name, stated]).toEqual([name, actual]);
			seen += 1;
		}
	}
	expect(rows.length).toBeGreaterThan(12);
	expect(rows.filter((row) => !/`test\/[\w/-]+\.test\.ts`/.test(row))).toEqual([]);
	for (const { resource } of [...Object.values(ATTACKERS), ...Object.values(CONSOLE_ATTACKERS)])
		expect(rows.filter((row) => row.startsWith(`| ${resource}`))).not.toEqual([]);
	expect(seen).toBeGreaterThan(20);
});
