/** Embeddings: one request out in each family's form, one list of vectors back. */
import type { CallContext } from "./call/attempt.ts";
import { unreadable } from "./call/failure.ts";
import type { Asker, UnaryCall } from "./call/unary.ts";
import type { Replica } from "./replicas/replica.ts";
import { asArray, asCount, asObject, asText } from "./wire-value.ts";

export type EmbeddingInput = string | readonly number[];

export interface EmbeddingRequest {
	readonly inputs: readonly EmbeddingInput[];
	/** Further fields that the deployment honours. */
	readonly fields: Readonly<Record<string, unknown>>;
}

export interface EmbeddingReply {
	/** One vector an input, in their order. */
	readonly vectors: readonly (readonly number[])[];
	/** Undefined if the upstream gave no count. */
	readonly promptTokens: number | undefined;
}

/** Numbers take some 20 bytes each as JSON. */
const ANSWER_BYTES_MAX = 256 * 1024 * 1024;
const TOKENS_MAX = 2 ** 31 - 1;

export function embeddingCall(request: EmbeddingRequest, context: CallContext): UnaryCall<EmbeddingReply> {
	const { inputs } = request;
	return {
		...context,
		async run(ask, replica) {
			const size = Math.min(replica.dialect.embeddings.inputsMax, inputs.length);
			const vectors: (readonly number[])[] = [];
			let promptTokens: number | undefined = 0;
			for (let at = 0; at < inputs.length; at += size) {
				const part = await post(ask, replica, request, inputs.slice(at, at + size));
				for (const vector of part.vectors) vectors.push(vector);
				promptTokens =
					promptTokens === undefined || part.promptTokens === undefined ? undefined : promptTokens + part.promptTokens;
			}
			return { vectors, promptTokens };
		},
	};
}

/** Always asks for numbers: servers differ in what they make of `base64`, and the gateway encodes by itself. */
function post(
	ask: Asker,
	replica: Replica,
	request: EmbeddingRequest,
	inputs: readonly EmbeddingInput[],
): Promise<EmbeddingReply> {
	const input = inputs.length === 1 ? inputs[0] : inputs;
	const body = { ...request.fields, model: replica.spec().model, input, encoding_format: "float" };
	return ask.post({
		path: "/embeddings",
		body: JSON.stringify(body),
		bytesMax: ANSWER_BYTES_MAX,
		read: (parsed, headers) => readEmbeddings(parsed, headers, inputs.length),
	});
}

function readEmbeddings(parsed: unknown, headers: Headers, count: number): EmbeddingReply {
	// Older llama.cpp answers with the bare list.
	const body = asObject(parsed);
	const items = asArray(parsed) ?? asArray(body?.data);
	if (items === undefined || items.length !== count) throw unreadable("embeddings that are not one an input");
	const vectors: (readonly number[] | undefined)[] = new Array(count).fill(undefined);
	items.forEach((raw, place) => {
		const item = asObject(raw);
		const index = asCount(item?.index ?? place, count - 1);
		const vector = vectorOf(item?.embedding);
		if (index === undefined || vectors[index] !== undefined || vector === undefined)
			throw unreadable("an embedding that is no vector, or whose index is taken");
		vectors[index] = vector;
	});
	return { vectors: vectors as (readonly number[])[], promptTokens: countOf(body?.usage, headers) };
}

function vectorOf(value: unknown): readonly number[] | undefined {
	const text = asText(value);
	if (text !== undefined) return decoded(text);
	const list = asArray(value);
	if (list === undefined || list.length === 0) return undefined;
	// Unpooled in form only: one row.
	if (list.length === 1 && Array.isArray(list[0])) return vectorOf(list[0]);
	for (const number of list) if (typeof number !== "number") return undefined;
	return list as readonly number[];
}

/** Base64 of little-endian float32, from a server that sends it whatever is asked. */
function decoded(base64: string): readonly number[] | undefined {
	const bytes = Buffer.from(base64, "base64");
	if (bytes.length === 0 || bytes.length % 4 !== 0) return undefined;
	const numbers: number[] = [];
	for (let at = 0; at < bytes.length; at += 4) numbers.push(bytes.readFloatLE(at));
	return numbers.every(Number.isFinite) ? numbers : undefined;
}

/** Zero is what servers send that do not know; TEI has its count in a header. */
export function countOf(usage: unknown, headers: Headers): number | undefined {
	const record = asObject(usage);
	const header = headers.get("x-compute-tokens");
	for (const value of [record?.prompt_tokens, record?.total_tokens, header === null ? undefined : Number(header)]) {
		const count = asCount(value, TOKENS_MAX);
		if (count !== undefined && count > 0) return count;
	}
	return undefined;
}
