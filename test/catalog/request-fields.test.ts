import { describe, expect, test } from "bun:test";
import { parseCatalogFile } from "../../src/catalog/file.ts";
import type { DialectName } from "../../src/catalog/model.ts";
import { whyUnsupported } from "../../src/catalog/request-fields.ts";
import { DIALECTS } from "../../src/upstream/dialects.ts";
import { generationBody } from "../../src/upstream/generation-request.ts";
import { Prompt } from "../../src/upstream/prompt.ts";
import type { Replica } from "../../src/upstream/replicas/replica.ts";

/** All optional request fields. */
const NAMES = (
	"temperature top_p stop seed frequency_penalty presence_penalty tools tool_choice response_format logprobs " +
	"top_logprobs logit_bias parallel_tool_calls top_k min_p repetition_penalty chat_template_kwargs best_of echo " +
	"suffix n_predict max_new_tokens num_predict"
).split(" ");
const FIELDS = Object.fromEntries(NAMES.map((name) => [name, 1]));
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

/** The warnings of the catalogue's check, and the fields that the deployment sends. */
function read(text: string): { warnings: string[]; parameters: string[] } {
	const { models, warnings } = parseCatalogFile(text, {});
	return {
		warnings: warnings.map(({ line, message }) => `${line}: ${message}`),
		parameters: [...(models[0]?.parameters ?? [])],
	};
}

describe("a request parameter that a model server's dialect does not have", () => {
	test("is removed, and the check of the file warns for each dialect", () => {
		expect(read(yaml("chat", ["vllm", "ollama", "tgi"], "temperature, n"))).toEqual({
			warnings: [
				'10: models[0].parameters[1]: "n" is ignored because dialect ollama does not support it: its servers return one choice regardless of `n`',
				'10: models[0].parameters[1]: "n" is ignored because dialect tgi does not support it: its servers return one choice regardless of `n`',
			],
			parameters: ["temperature"],
		});
		expect(read(yaml("chat", ["tgi"], "logit_bias, max_tokens")).parameters).toEqual(["max_tokens"]);
		expect(read(yaml("rerank", ["tei"], "truncate"))).toEqual({
			warnings: [
				'9: models[0].parameters[0]: "truncate" is ignored because dialect tei does not support it: its servers accept no such options',
			],
			parameters: [],
		});
	});

	test("is removed if the gateway handles the field itself", () => {
		for (const name of ["best_of", "n_predict", "max_new_tokens", "num_predict"])
			expect(read(yaml("chat", ["vllm"], name))).toMatchObject({ warnings: [expect.any(String)], parameters: [] });
		expect(read(yaml("chat", ["llama.cpp"], "n_predict")).warnings[0]).toContain(
			"the output limit is `max_tokens` here",
		);
		expect(read(yaml("image", ["openai"], "partial_images")).parameters).toEqual([]);
	});

	test("is kept if the server supports it", () => {
		for (const [kind, dialects, parameters] of [
			["chat", ["vllm", "sglang", "llama.cpp", "openai"], "n, logit_bias, constructor"],
			["chat", ["ollama", "tgi"], "temperature, max_tokens, stop"],
			["rerank", ["vllm"], "truncate"],
			["rerank", ["tei"], "top_n, return_documents"],
		] as const)
			expect(read(yaml(kind, dialects, parameters))).toEqual({ warnings: [], parameters: parameters.split(", ") });
	});

	test.each(CHAT_DIALECTS.map(({ name }) => name))(
		"%s: `catalog check` warns of exactly the fields that requests lose",
		(name) => {
			const replica = { dialect: DIALECTS[name], spec: () => ({ model: "m" }) } as unknown as Replica;
			const asked = { fields: FIELDS, prompt: new Prompt([]), maxOutputTokens: 9, n: 3, parameters: new Set<string>() };
			const [chat, completion] = (["chat", "completions"] as const).map(
				(kind) => JSON.parse(generationBody(replica, { kind, ...asked }, false)) as Record<string, unknown>,
			) as [Record<string, unknown>, Record<string, unknown>];
			const parameters = [...NAMES, "n"];
			const isDropped = (field: string) => !(field in chat) || !(field in completion);
			const refused = parameters.filter((field) => whyUnsupported(name, "chat", field) !== undefined);
			expect(refused).toEqual(parameters.filter(isDropped));
		},
	);
});
