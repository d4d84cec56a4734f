import { describe, expect, test } from "bun:test";
import { whyNotHonoured } from "../../src/catalog/dialect-parameters.ts";
import { parseCatalogFile } from "../../src/catalog/file.ts";
import type { DialectName } from "../../src/catalog/model.ts";
import { completionRequestText } from "../../src/upstream/completion-request.ts";
import { DIALECTS } from "../../src/upstream/dialects.ts";
import type { Replica } from "../../src/upstream/replica.ts";

/** Whatever a client may ask for by name, with a value that says something. */
const FIELDS: Readonly<Record<string, unknown>> = {
	temperature: 0.5,
	top_p: 0.5,
	stop: ["x"],
	seed: 1,
	frequency_penalty: 1,
	presence_penalty: 1,
	tools: [],
	tool_choice: "auto",
	response_format: { type: "json_object" },
	logprobs: true,
	top_logprobs: 1,
	logit_bias: { 1: 1 },
	parallel_tool_calls: true,
	top_k: 1,
	min_p: 0.1,
	repetition_penalty: 1,
	chat_template_kwargs: {},
	best_of: 2,
	echo: true,
	suffix: "x",
	n_predict: 1,
	max_new_tokens: 1,
	num_predict: 1,
};
const CHAT_DIALECTS = Object.values(DIALECTS).filter(({ name }) => name !== "tei");

function yaml(kind: string, dialects: readonly DialectName[], parameters: string): string {
	const upstreams = dialects.map((dialect, at) => `{ url: "http://h:${8000 + at}/v1", model: m, dialect: ${dialect} }`);
	const rates = kind === "rerank" ? 'search: "0.1"' : kind === "image" ? 'image: "0.1"' : 'input: "1", output: "1"';
	return `models:
  - id: m
    kind: ${kind}
    context_length: 4096
    ${kind === "chat" ? "max_output_tokens: 512" : ""}
    rates: { ${rates} }
    upstreams: [${upstreams.join(", ")}]
    parameters:
${parameters
	.split(", ")
	.map((name) => `      - ${name}`)
	.join("\n")}
`;
}

function problems(text: string): string[] {
	try {
		parseCatalogFile(text, {});
		return [];
	} catch (error) {
		return (error as { problems: { line: number; message: string }[] }).problems.map(
			({ line, message }) => `${line}: ${message}`,
		);
	}
}

describe("a parameter that a server's dialect cannot express", () => {
	test("is refused with its line and why, for each family among the upstreams", () => {
		expect(problems(yaml("chat", ["vllm", "ollama", "tgi"], "temperature, n"))).toEqual([
			'10: models[0].parameters[1]: "n" cannot be honoured with dialect ollama: its servers answer with one choice, whatever is asked',
			'10: models[0].parameters[1]: "n" cannot be honoured with dialect tgi: its servers answer with one choice, whatever is asked',
		]);
		expect(problems(yaml("chat", ["tgi"], "logit_bias, max_tokens"))).toHaveLength(1);
		expect(problems(yaml("rerank", ["tei"], "truncate"))).toEqual([
			'9: models[0].parameters[0]: "truncate" cannot be honoured with dialect tei: its servers take no such options',
		]);
	});

	test("is refused whatever the dialect if the service itself stands in its place", () => {
		for (const name of ["best_of", "n_predict", "max_new_tokens", "num_predict"])
			expect(problems(yaml("chat", ["vllm"], name))).toHaveLength(1);
		expect(problems(yaml("chat", ["llama.cpp"], "n_predict"))[0]).toContain("the output limit is `max_tokens` here");
		expect(problems(yaml("image", ["openai"], "partial_images"))).toHaveLength(1);
	});

	test("is none where the server has it", () => {
		expect(problems(yaml("chat", ["vllm", "sglang", "llama.cpp", "openai"], "n, logit_bias, constructor"))).toEqual([]);
		expect(problems(yaml("chat", ["ollama", "tgi"], "temperature, max_tokens, stop"))).toEqual([]);
		expect(problems(yaml("rerank", ["vllm"], "truncate"))).toEqual([]);
		expect(problems(yaml("rerank", ["tei"], "top_n, return_documents"))).toEqual([]);
	});

	test.each(CHAT_DIALECTS.map(({ name }) => name))("%s: what is refused is exactly what would be dropped", (name) => {
		const dialect = DIALECTS[name];
		const context = { upstreamModel: "m", stream: false, outputLimit: 9, parameters: new Set<string>(), n: 3 };
		const chat = JSON.parse(dialect.chatRequest(FIELDS, context)) as Record<string, unknown>;
		const replica = { dialect, spec: () => ({ model: "m" }) } as unknown as Replica;
		const asked = { fields: FIELDS, outputLimit: 9, n: 3, stream: false };
		const completion = JSON.parse(completionRequestText(replica, asked)) as Record<string, unknown>;
		const parameters = [...Object.keys(FIELDS), "n"];
		// Of completions the gateway passes no `best_of` on.
		const isDropped = (field: string) => field === "best_of" || !(field in chat) || !(field in completion);
		const refused = parameters.filter((field) => whyNotHonoured(name, "chat", field) !== undefined);
		expect(refused).toEqual(parameters.filter(isDropped));
	});
});
