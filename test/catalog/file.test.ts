// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the files under test hold ${NAME} themselves.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { checkCatalog, parseCatalogFile } from "../../src/catalog/file.ts";
import { type ConfigurableLimits, DEFAULT_LIMITS, LIMIT_FIELDS } from "../../src/catalog/service-limits.ts";
import { CATALOGUE_ENV, FULL_CATALOGUE, linesOf, oneModel, problemsOf } from "./catalog-text.ts";

describe("a valid tollgate.yaml", () => {
	test("is read with every field and exact rates", () => {
		const { models, limits } = parseCatalogFile(FULL_CATALOGUE, CATALOGUE_ENV);
		const [llama, bge, whisper] = models;
		expect(llama).toMatchObject({
			id: "llama-3.3-70b-instruct",
			aliases: ["llama", "meta/llama"],
			name: "Llama 3.3 70B Instruct",
			kind: "chat",
			imageUrls: "forward",
			contextLength: 131072,
			maxOutputTokens: 8192,
			templateOverheadTokens: 64,
			textNormalization: "none",
			unsupportedParameters: "reject",
			developerRole: "keep",
			reasoningHistory: "omit",
			isolatePrefixes: true,
			cost: { replicaHour: 2_500_000_001, input: 100_000, output: 0 },
			upstreams: [
				{
					url: "http://127.0.0.1:8000/v1",
					apiKey: "key-1",
					model: "meta-llama/Llama-3.3-70B-Instruct",
					dialect: "vllm",
					maxConcurrency: 32,
					keepAlive: false,
					reasoningTokens: "beside",
				},
				{
					url: "https://gpu-2.example",
					apiKey: null,
					model: "x",
					dialect: "openai",
					maxConcurrency: 256,
					keepAlive: true,
					reasoningTokens: "inside",
				},
			],
		});
		expect([...(llama?.modes ?? [])]).toEqual(["chat", "completions"]);
		expect([...(llama?.parameters ?? [])]).toEqual(["temperature", "top_p", "max_tokens"]);
		expect(llama?.rates as unknown).toEqual({
			input: 230_000,
			cachedInput: 60_000,
			output: 400_000,
			request: 0,
			image: 0,
			audioSecond: 0,
			search: 0,
		});
		expect(bge).toMatchObject({
			name: "bge",
			outputModalities: new Set(["embeddings"]),
			unsupportedParameters: "reject_essential",
			maxOutputTokens: 0,
			imageUrls: "data_only",
			templateOverheadTokens: 256,
			textNormalization: "nfkc",
		});
		expect(bge?.modes.size).toBe(0);
		expect(bge?.rates.cachedInput as number).toBe(10_000);
		expect(whisper?.rates.audioSecond as number).toBe(100_000_000);
		expect(limits).toEqual({ ...DEFAULT_LIMITS, holdStatusMs: 2500, bodyBytesMax: 8 * 1024 * 1024 });
	});

	test("has the default limits if it sets none", () => {
		expect(parseCatalogFile(oneModel(), {}).limits).toEqual(DEFAULT_LIMITS);
	});

	test("has defaults that lie within the bounds of each limit", () => {
		const { bodyMemoryAccountBytesMax, answerMemoryBytesMax, answerMemoryAccountBytesMax, ...others } = DEFAULT_LIMITS;
		const { filesBytesMax, healthIntervalMs, accounts, ...set } = others;
		expect(LIMIT_FIELDS.map(({ limit }) => limit as string).sort()).toEqual(Object.keys(set).sort());
		for (const field of LIMIT_FIELDS) {
			const value = DEFAULT_LIMITS[field.limit] / field.scale;
			expect(value).toBeGreaterThanOrEqual(field.min);
			expect(value).toBeLessThanOrEqual(field.max);
			const text = `${oneModel()}limits: { ${field.name}: ${value} }\n`;
			expect(parseCatalogFile(text, {}).limits).toEqual(DEFAULT_LIMITS);
		}
	});

	test("has the limits of accounts by tag, and a model's tokens per minute", () => {
		const accounts =
			"accounts: [{ tag: large, concurrency: 9 }, { tokens_per_minute: 60000, requests_per_minute: 600 }]";
		const model = oneModel().replace(
			/( +)upstreams:/,
			"$1tokens_per_minute: 5000\n$1visible_to: [pilot]\n$1upstreams:",
		);
		const { limits, models } = parseCatalogFile(`${model}limits: { ${accounts} }\n`, {});
		expect(models[0]).toMatchObject({ tokensPerMinute: 5_000, visibleTo: ["pilot"] });
		const badly = oneModel().replace(/( +)upstreams:/, "$1visible_to: [acc_short]\n$1upstreams:");
		expect(JSON.stringify(problemsOf(badly))).toContain("visible_to");
		expect(limits.accounts).toEqual([
			{ tag: "large", requestsPerMinute: null, concurrencyMax: 9, tokensPerMinute: null },
			{ tag: null, requestsPerMinute: 600, concurrencyMax: null, tokensPerMinute: 60_000 },
		]);
		const wrong = problemsOf(`${oneModel()}limits: { accounts: [{ tag: acc_1, tokens_per_minute: 0 }] }\n`);
		expect(JSON.stringify(wrong)).toMatch(/tag: must be 1 to 40.*tokens_per_minute/);
	});

	test("accepts fractions only in limits of times and shares", () => {
		for (const { name, max } of LIMIT_FIELDS) {
			const check = checkCatalog(`${oneModel()}limits: { ${name}: ${max === 1 ? 0.5 : 5.5} }\n`, {});
			expect({ name, ok: check.ok }).toEqual({ name, ok: name.endsWith("_s") || name.endsWith("_share") });
		}
	});

	test("sets the total file space and the health interval through other limits", () => {
		const limitsOf = (text: string) => parseCatalogFile(`${oneModel()}limits: { ${text} }\n`, {}).limits;
		expect(DEFAULT_LIMITS).toMatchObject({ filesBytesMax: 100 * 1024 ** 3, healthIntervalMs: 5_000 });
		expect(limitsOf("files_account_mb: 1024").filesBytesMax).toBe(10 * 1024 ** 3);
		expect(limitsOf("breaker_cool_s: 4").healthIntervalMs).toBe(2_000);
		expect(limitsOf("breaker_cool_s: 0.1").healthIntervalMs).toBe(500);
	});

	test("raises or lowers the default of a limit to fit a related limit that is set", () => {
		const cool = (text: string) => `${oneModel()}limits: { ${text} }\n`;
		expect(parseCatalogFile(cool("breaker_cool_s: 300"), {}).limits.breakerCoolMsMax).toBe(300_000);
		expect(parseCatalogFile(cool("total_s: 60"), {}).limits).toMatchObject({ firstEventMs: 60_000, silenceMs: 60_000 });
		expect(linesOf(cool("breaker_cool_s: 20, breaker_cool_max_s: 10"))).toEqual([
			"8: limits.breaker_cool_s: must not be greater than breaker_cool_max_s",
		]);
	});

	test("never allows one account more than the limit of all accounts", () => {
		const chains = [
			["body_mb", "body_memory_mb"],
			["file_mb", "files_account_mb"],
		].map((names) => names.map((name) => ({ name, limit: LIMIT_FIELDS.find((field) => field.name === name)?.limit })));
		const amount = fc.option(fc.integer({ min: 1, max: 1024 }));
		fc.assert(
			fc.property(fc.constantFrom(...chains), fc.tuple(amount, amount), (chain, amounts) => {
				const given = amounts.filter((one) => one !== null);
				const fields = chain.flatMap(({ name }, at) => (amounts[at] === null ? [] : [`${name}: ${amounts[at]}`]));
				const check = checkCatalog(`${oneModel()}limits: { ${fields.join(", ")} }\n`, {});
				expect(check.ok).toBe(given.every((one, at) => at === 0 || (given[at - 1] as number) <= one));
				if (!check.ok) return;
				const inForce = chain.map(({ limit }) => check.limits[limit as keyof ConfigurableLimits]);
				expect(inForce).toEqual(inForce.toSorted((a, b) => a - b));
				const unit = 1024 * 1024;
				for (const [at, one] of amounts.entries()) if (one !== null) expect(inForce[at]).toBe(one * unit);
			}),
		);
	});
});

const costing = (cost: string) => oneModel({ extra: `    cost: ${cost}\n` });

describe("mistakes in a tollgate.yaml", () => {
	test("are reported together, each with its line", () => {
		const text = `models:
  - id: "bad id"
    kind: chat
    contxt_length: 10
    max_output_tokens: ten
    modes: [chat, responses]
    rates:
      input: 0.23
      output: "0.0000001"
      search: "1"
    upstreams:
      - url: ftp://host
        api_key: \${NOPE}
        model: m
        dialect: tei
      - url: http://user:hunter2@host/v1
        dialect: vlm
  - id: a
    kind: embedding
    modes: [chat]
    max_output_tokens: 5
    rates: { output: "1" }
    upstreams: []
  - id: a
    kind: rerank
    rates: {}
    upstreams: [{ url: "http://h/v1?x=1", model: m, dialect: tgi, max_concurrency: 0, reasoning_tokens: apart }]
limits:
  connect_s: "5"
  conect_s: 5
extra: 1
`;
		expect(linesOf(text)).toEqual([
			"2: models[0].id: must be 1 to 128 of the characters A-Z a-z 0-9 . _ : / -",
			'2: models[0]: the field "context_length" is missing',
			'4: models[0]: unknown field "contxt_length"; did you mean "context_length"?',
			'5: models[0].max_output_tokens: must be a whole number from 1 to 100000000, got "ten"',
			'6: models[0].modes[1]: must be one of chat, completions, batch; got "responses"',
			'8: models[0].rates.input: write rates as quoted decimal strings: "0.23" instead of 0.23',
			'9: models[0].rates.output: must be a decimal string from "0" to "1000000" with at most 6 decimals (USD per million tokens), got "0.0000001"; if it is the rate per token, write "0.1"',
			"10: models[0].rates.search: a model of kind chat is not billed by this unit; remove the rate",
			"12: models[0].upstreams[0].url: must begin with http:// or https://",
			'13: models[0].upstreams[0].api_key: the environment variable "NOPE" is not set',
			"15: models[0].upstreams[0].dialect: a tei server cannot serve a model of kind chat",
			"16: models[0].upstreams[1].url: must not contain a user name or password; use api_key",
			'16: models[0].upstreams[1]: the field "model" is missing',
			'17: models[0].upstreams[1].dialect: must be one of openai, vllm, sglang, llama.cpp, ollama, tgi, tei; got "vlm"',
			"20: models[1].modes: a model of kind embedding supports only the mode batch",
			"21: models[1].max_output_tokens: a model of kind embedding generates no tokens",
			"22: models[1].rates.output: a model of kind embedding is not billed by this unit; remove the rate",
			'22: models[1].rates: a model of kind embedding needs a rate for input; "0" makes it free',
			"23: models[1].upstreams: needs at least one entry",
			'24: models[2]: the name "a" is already used in line 18',
			'26: models[2].rates: a model of kind rerank needs a rate for search, or for input; "0" makes it free',
			"27: models[2].upstreams[0].url: must not have a query (?…)",
			"27: models[2].upstreams[0].dialect: a tgi server cannot serve a model of kind rerank",
			'27: models[2].upstreams[0].max_concurrency: must be a whole number from 1 to 65536, got "0"',
			'27: models[2].upstreams[0].reasoning_tokens: must be one of inside, beside; got "apart"',
			"29: limits.connect_s: must be a number from 0.1 to 120, got text: write 5 without quotes",
			'30: limits: unknown field "conect_s"; did you mean "connect_s"?',
			'31: file: unknown field "extra"; known are models, routes, limits, cors, brand',
		]);
	});

	test("are all listed in the error's message", () => {
		const text = "models: []\nnope: 1\nnada: 2\n";
		expect(() => parseCatalogFile(text, {})).toThrow(
			'the catalogue has 2 problems:\n  line 2: file: unknown field "nope"; known are models, routes, limits, cors, brand\n  line 3: file: unknown field "nada"; known are models, routes, limits, cors, brand',
		);
	});

	test.each([
		["", "1: the file is empty"],
		["# nothing\n", "1: the file is empty"],
		["- a\n", "1: file: must be a mapping of fields"],
		["limits: {}\n", '1: file: the field "models" is missing'],
		["models: {}\n", "1: models: must be a list"],
		["models:\n  -\n", "2: models[0]: is empty"],
		[costing("{}"), "8: models[0].cost: needs at least one of replica_hour, input, output"],
		[costing('"1"'), "8: models[0].cost: must be a mapping of fields"],
		[costing('{ hour: "1" }'), '8: models[0].cost: unknown field "hour"; known are replica_hour, input, output'],
		[costing("{ input: 0.1 }"), '8: models[0].cost.input: write rates as quoted decimal strings: "0.1" instead of 0.1'],
		[
			costing('{ replica_hour: "9008" }'),
			'8: models[0].cost.replica_hour: must be a decimal string from "0" to "9000"',
		],
		["models: *nobody\n", '1: models: the anchor of the alias "*nobody" is missing'],
		["models: []\nmodels: []\n", "2: not valid YAML: Map keys must be unique"],
		["models: []\n---\nmodels: []\n", "2: not valid YAML: a line of --- starts a second document; remove it"],
		["models: []\nx: !!thing 1\n", "2: not valid YAML: Unresolved tag"],
		["models: [\n  {id: a\n", "not valid YAML"],
		[
			"models:\n  - { id: ${X} }\n",
			'2: not valid YAML: Unexpected flow-map-start at node end; inside {} and [] a variable needs quotes: "${NAME}"',
		],
	])("are found in the file %j: %j", (text, expected) => {
		expect(linesOf(text, { X: "a" }).join("\n")).toContain(expected);
	});

	test.each(["2027-02-30", "2027-01-31T12:00:00Z", "31.1.2027", "soon", '""'])(
		"include an invalid retirement day (%s)",
		(day) => {
			const [line] = linesOf(oneModel({ extra: `    retires_on: ${day}\n` }));
			expect(line).toStartWith("8: models[0].retires_on: must be a day such as 2027-01-31, got ");
		},
	);

	test("include a YAML alias that contains itself", () => {
		expect(linesOf("models: &a [*a]\n")[0]).toContain("1: models[0]: must be a mapping");
	});

	test("include max_output_tokens above context_length", () => {
		const text = oneModel().replace("max_output_tokens: 1024", "max_output_tokens: 8193");
		expect(linesOf(text)).toEqual(["5: models[0].max_output_tokens: must not be greater than context_length (8192)"]);
	});

	test("include an alias that equals an id", () => {
		const text = `${oneModel({ id: "a", extra: "    aliases: [b]\n" })}${oneModel({ id: "b" }).replace("models:\n", "")}`;
		expect(linesOf(text)).toEqual(['9: models[1]: the name "b" is already used in line 8']);
	});

	test("include a server that is listed twice for a model", () => {
		const upstream = "{ url: http://h/v1, model: s, dialect: vllm }";
		const text = oneModel().replace(/upstreams: .*/, `upstreams: [${upstream}, ${upstream}]`);
		expect(linesOf(text)).toEqual(["7: models[0].upstreams[1]: the same url and model as in line 7"]);
	});

	test("are reported at their own line, wherever they are in the file", () => {
		const lines = FULL_CATALOGUE.split("\n");
		const places = lines.flatMap((line, index) =>
			/^( {4}| {8})[a-z_]+:/.test(line) && !line.includes("&") ? [index] : [],
		);
		fc.assert(
			fc.property(fc.uniqueArray(fc.constantFrom(...places), { minLength: 1, maxLength: 8 }), (chosen) => {
				const indexes = chosen.toSorted((a, b) => a - b);
				const text = lines
					.flatMap((line, index) => {
						const indent = /^ */.exec(line)?.[0] ?? "";
						// Each inserted field has another name, because YAML refuses a repeated name.
						return indexes.includes(index) ? [`${indent}bogus_${index}: 1`, line] : [line];
					})
					.join("\n");
				const expected = indexes.map((index, before) => index + before + 1);
				expect(problemsOf(text, CATALOGUE_ENV).map(({ line }) => line)).toEqual(expected);
			}),
		);
	});
});

describe("variables in a tollgate.yaml", () => {
	const withName = (value: string) => oneModel({ extra: `    name: ${value}\n` });

	test("are replaced by one value, whatever characters it contains", () => {
		fc.assert(
			fc.property(fc.string({ maxLength: 40 }), (suffix) => {
				const value = `x\n    unknown_field: 1\n  - id: other # ${suffix} \${HOME} *a "`;
				const text = oneModel().replace("model: served", 'model: "${NAME}"');
				const problems = problemsOf(text, { NAME: value, HOME: "/root" });
				// The line break makes the model's name invalid, and causes no other problem.
				expect(problems).toEqual([
					{
						line: 7,
						message: "models[0].upstreams[0].model: must be a name of 1 to 512 characters without control characters",
					},
				]);
			}),
		);
		const file = parseCatalogFile(withName("${NAME}"), { NAME: '[a, {b: "${HOME}"}] # *c' });
		expect(file.models[0]?.name).toBe('[a, {b: "${HOME}"}] # *c');
		expect(file.models.length).toBe(1);
	});

	test("are replaced anywhere in a value, unless the variable is escaped", () => {
		const env = { A: "1", B: "2" };
		expect(parseCatalogFile(withName("x-${A}-${B}-$${A}"), env).models[0]?.name).toBe("x-1-2-${A}");
	});

	test("count as not set if only Object.prototype has a property of their name", () => {
		expect(linesOf(withName("${constructor}"))).toEqual([
			'8: models[0].name: the environment variable "constructor" is not set',
		]);
	});

	test("may be empty in `api_key`, for a server without a key", () => {
		const text = oneModel().replace("dialect: vllm", 'dialect: vllm, api_key: "${KEY}"');
		expect(parseCatalogFile(text, { KEY: "" }).models[0]?.upstreams[0]?.apiKey).toBeNull();
		const [problem] = linesOf(text, { KEY: "hunter2\n" });
		expect(problem).toContain("7: models[0].upstreams[0].api_key: must be");
		expect(problem).not.toContain("hunter2");
	});

	test("never show their values in messages", () => {
		const secret = "hunter2-hunter2";
		const text = FULL_CATALOGUE.replace(
			/(id|name|kind|image_urls|url|model|dialect|keep_alive|context_length): [^,}\n]+/g,
			'$1: "${S} "',
		)
			.replace('"0.23"', '"${S}"')
			.replaceAll("temperature", '"${S} "');
		const problems = problemsOf(text, { ...CATALOGUE_ENV, S: secret });
		expect(problems.length).toBeGreaterThan(10);
		expect(JSON.stringify(problems)).not.toContain(secret);
	});
});
