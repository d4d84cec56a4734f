// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the files under test hold ${NAME} themselves.
import { describe, expect, test } from "bun:test";
import { checkCatalog, formatCatalogCheck, parseCatalogFile } from "../../src/catalog/file.ts";
import { CATALOGUE_ENV, FULL_CATALOGUE, linesOf, oneModel, problemsOf } from "./catalog-text.ts";

describe("the section `rates` of the catalogue file", () => {
	test.each(["0", "0.000001", "1000000", "12.5", "3.100000000"])("accepts %j USD per million", (input) => {
		expect(problemsOf(oneModel({ input }))).toEqual([]);
	});
	test("shows the valid form of a number in the error about a wrong number", () => {
		const rate = (input: string) =>
			(linesOf(oneModel({}).replace(/input: "[^"]*"/, `input: ${input}`))[0] ?? "").split("rates.input: ")[1];
		const asPlain = (plain: string, written: string) =>
			`write rates as quoted decimal strings: "${plain}" instead of ${written}`;
		const token = (usd: string) => `; if it is the rate per token, write "${usd}"`;
		expect(rate("1e3")).toBe(asPlain("1000", "1e3"));
		expect(rate('"1e3"')).toBe(asPlain("1000", '"1e3"'));
		expect(rate('".5"')).toBe(asPlain("0.5", '".5"'));
		expect(rate("3e-6")).toBe(asPlain("0.000003", "3e-6") + token("3"));
		for (const written of ["1e-7", '"1e-7"', "1.0E-7", '"0.0000001"'])
			expect(rate(written)).toEndWith(`got ${JSON.stringify(written.replaceAll('"', ""))}${token("0.1")}`);
		expect(rate("1e-13")).toEndWith('got "1e-13"');
		expect(rate("0.1234567890123")).toEndWith('got "0.1234567890123"');
		const { warnings } = parseCatalogFile(oneModel({ input: "0.000003" }), {});
		expect(warnings.map(({ message }) => message)).toEqual([
			`models[0].rates.input: USD 0.000003 per million tokens is very low${token("3")}`,
		]);
		for (const input of ["0", "0.001", "3"]) expect(parseCatalogFile(oneModel({ input }), {}).warnings).toEqual([]);
		for (const [given, said] of [
			['"8192"', "got text: write 8192 without quotes"],
			["8k", 'got "8k"'],
		])
			expect(linesOf(`${oneModel({})}\nlimits: { body_mb: ${given} }`)[0]).toEndWith(said as string);
	});

	test.each(["", "-1", "0.0000001", "1000000.000001", "1,5", " 1", "$1", "NaN"])("refuses %j", (input) => {
		expect(linesOf(oneModel({ input }))[0]).toContain("6: models[0].rates.input: must be a decimal string");
	});
	test("may have a `cached_input` above `input`", () => {
		const text = oneModel().replace('output: "0.40"', 'output: "0.40", cached_input: "9"');
		expect(parseCatalogFile(text, {}).models[0]?.rates.cachedInput as number).toBe(9_000_000);
	});
	test("is refused without an output rate for a chat model", () => {
		const text = oneModel().replace(', output: "0.40"', "");
		expect(linesOf(text)).toEqual([
			'6: models[0].rates: a model of kind chat needs a rate for input and output; "0" makes it free',
		]);
	});
});

describe("the section `cors` of the catalogue file", () => {
	const corsOf = (value: string) => parseCatalogFile(`${oneModel()}\ncors: ${value}`, {}).cors;

	test("allows all origins, no origin, or the origins of a list", () => {
		expect(parseCatalogFile(oneModel(), {}).cors).toBe("*");
		expect(corsOf('"*"')).toBe("*");
		expect(corsOf("off")).toEqual(new Set());
		expect(corsOf("[https://a.example, http://localhost:3000]")).toEqual(
			new Set(["https://a.example", "http://localhost:3000"]),
		);
	});

	test("refuses values that no browser sends as an origin", () => {
		for (const value of ["on", "false", "https://a.example", "[a.example]", "[https://a.example/]", '["*"]', "[null]"])
			expect(() => corsOf(value)).toThrow("cors");
	});
});

describe("the mode `batch` of a model in the catalogue file", () => {
	const withBatch = (extra: string) => oneModel({ extra: `    modes: [chat, batch]\n${extra}` });

	test("is read with its own batch rates, or with the usual rates if it has none", () => {
		const [usual] = parseCatalogFile(withBatch(""), {}).models;
		expect([...(usual?.modes ?? [])]).toEqual(["chat"]);
		expect(usual?.batch).toEqual({ rates: null });
		const [cheap] = parseCatalogFile(withBatch('    batch_rates: { input: "0.1", output: "0.2" }\n'), {}).models;
		expect(cheap?.batch?.rates).toMatchObject({ input: 100_000, cachedInput: 100_000, output: 200_000 });
		expect(parseCatalogFile(oneModel(), {}).models[0]?.batch).toBeUndefined();
		const check = checkCatalog(withBatch('    batch_rates: { input: "0.1", output: "0.2" }\n'), {});
		expect(formatCatalogCheck(check)).toContain("; in batches: input 0.1, cached_input 0.1, output 0.2");
	});

	test("is refused as only mode, for other kinds of models, and with incomplete rates", () => {
		const problem = (text: string) => linesOf(text).map((line) => line.replace(/^\d+: models\[0\]\./, ""));
		expect(problem(oneModel({ extra: "    modes: [batch]\n" }))).toEqual([
			"modes: needs chat, completions or both in addition to batch",
		]);
		expect(problem(oneModel({ extra: '    batch_rates: { input: "1", output: "1" }\n' }))).toEqual([
			"batch_rates: needs batch in `modes`",
		]);
		expect(problem(withBatch('    batch_rates: { input: "1" }\n'))).toEqual([
			'batch_rates: a model of kind chat needs a rate for input and output; "0" makes it free',
		]);
		const rerank = FULL_CATALOGUE.replace("kind: transcription", "kind: transcription\n    modes: [batch]");
		expect(linesOf(rerank, CATALOGUE_ENV).join()).toContain(
			"belongs to kind chat; a model of kind transcription has none",
		);
		const embedding = FULL_CATALOGUE.replace("kind: embedding", "kind: embedding\n    modes: [batch]");
		expect(parseCatalogFile(embedding, CATALOGUE_ENV).models[1]).toMatchObject({
			modes: new Set(),
			batch: { rates: null },
		});
	});
});

describe("the command `catalog check`", () => {
	test("summarises a valid file", () => {
		const check = checkCatalog(FULL_CATALOGUE, CATALOGUE_ENV);
		expect(check).toMatchObject({
			ok: true,
			models: [
				{ id: "llama-3.3-70b-instruct", replicas: 2, rates: { input: "0.23", cached_input: "0.06", output: "0.4" } },
				{ id: "bge", replicas: 1 },
				{ id: "whisper", rates: { audio_second: "0.0001" } },
			],
		});
		expect(formatCatalogCheck(check)).toContain("\n  bge (embedding, 1 replica): input 0.01, cached_input 0.01\n");
		expect(JSON.stringify(check)).not.toContain("key-1");
	});

	test("lists the problems of an invalid file", () => {
		expect(formatCatalogCheck(checkCatalog("models: 1\n", {}))).toBe(
			"the catalogue has a problem:\n  line 1: models: must be a list",
		);
	});
});

describe("the section `routes` of the catalogue file", () => {
	const models = `models:
  - { id: a, aliases: [nick], kind: embedding, rates: { input: "2" }, upstreams: [{ url: "http://127.0.0.1:1", model: a, dialect: tei }] }
  - { id: b, kind: embedding, rates: { input: "1" }, upstreams: [{ url: "http://127.0.0.1:2", model: b, dialect: tei }] }
  - { id: r, kind: rerank, rates: { search: "1" }, upstreams: [{ url: "http://127.0.0.1:3", model: r, dialect: tei }] }
`;
	const withRoutes = (...routes: string[]) => `${models}routes:\n${routes.map((route) => `  - ${route}`).join("\n")}`;

	test("names its models by id or alias, and tries them in the file's order by default", () => {
		const { routes } = parseCatalogFile(
			withRoutes("{ id: auto, models: [b, nick] }", "{ id: x, name: X, models: [b], by: speed }"),
			{},
		);
		expect(routes).toEqual([
			{ id: "auto", name: "auto", modelIds: ["b", "a"], by: "listed" },
			{ id: "x", name: "X", modelIds: ["b"], by: "speed" },
		]);
	});

	test.each([
		["{ id: auto, models: [c] }", /there is no model "c" in this file/],
		["{ id: auto, models: [a, nick] }", /"nick" is listed twice/],
		["{ id: auto, models: [a, r] }", /"r" is of kind rerank, the models before it of kind embedding/],
		["{ id: auto, models: [] }", /at least one model/],
		["{ id: auto, models: [a], by: luck }", /listed, price, speed/],
		["{ id: nick, models: [a] }", /already used in line 2/],
		["{ id: auto }", /models/],
		["{ id: auto, models: [a], fallback: true }", /fallback/],
		[`{ id: auto, models: [${"a, ".repeat(9)}] }`, /8/],
	])("reports %s with its line", (route, message) => {
		const problems = problemsOf(withRoutes(route));
		expect(problems).toContainEqual({ line: 6, message: expect.stringMatching(message) });
	});

	test("is printed by `catalog check` with the order of its models", () => {
		expect(formatCatalogCheck(checkCatalog(withRoutes("{ id: auto, models: [a, b], by: price }"), {}))).toContain(
			"auto (route, by price): a, b",
		);
	});
});
