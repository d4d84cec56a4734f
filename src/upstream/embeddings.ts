import { mapInTurns } from "../base/time-slice.ts";
import type { CallContext } from "./call/attempt.ts";
import { unreadableAnswer } from "./call/failure.ts";
import type { PostSender, UnaryCall } from "./call/unary.ts";
import type { Replica } from "./replicas/replica.ts";
import { type ReportedUsage, usageOfChoices, usageOfInput } from "./usage.ts";
import { asArray, asCount, asObject, asText } from "./wire-value.ts";

export type EmbeddingInput = string | readonly number[];

export interface EmbeddingRequest {
	readonly inputs: readonly EmbeddingInput[];
	/** True: vectors are returned as base64 of little-endian float32. */
	readonly base64: boolean;
	readonly fields: Readonly<Record<string, unknown>>;
}

export type EmbeddingVector = readonly number[] | string;

export interface EmbeddingReply {
	readonly vectors: readonly EmbeddingVector[];
	/** Undefined if the server reported no token count. */
	readonly usage: ReportedUsage | undefined;
}

/** Largest answer in bytes. A number takes about 20 bytes as JSON. */
const ANSWER_BYTES_MAX = 256 * 1024 * 1024;
const VECTOR_MAX = 65_536;

export function embeddingCall(request: EmbeddingRequest, context: CallContext): UnaryCall<EmbeddingReply> {
	const { inputs } = request;
	return {
		context,
		async run(ask, replica) {
			const size = Math.min(replica.dialect.embeddings.inputsMax, inputs.length);
			const vectors: EmbeddingVector[] = [];
			const usages: (ReportedUsage | undefined)[] = [];
			for (let at = 0; at < inputs.length; at += size) {
				const part = await post(ask, replica, request, inputs.slice(at, at + size));
				for (const vector of part.vectors) vectors.push(vector);
				usages.push(part.usage);
			}
			return { vectors, usage: usages.includes(undefined) ? undefined : usageOfChoices(usages, 1) };
		},
	};
}

/** Always requests numbers: servers encode base64 differently, so the gateway encodes the vectors. */
function post(
	ask: PostSender,
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
		read: (parsed, headers) => readEmbeddings(parsed, headers, { count: inputs.length, base64: request.base64 }),
	});
}

async function readEmbeddings(
	parsed: unknown,
	headers: Headers,
	{ count, base64 }: { count: number; base64: boolean },
): Promise<EmbeddingReply> {
	// Older llama.cpp sends the list without an object around it.
	const body = asObject(parsed);
	const items = asArray(parsed) ?? asArray(body?.data);
	if (items === undefined || items.length !== count) throw unreadableAnswer("embeddings that are not one an input");
	const vectors: (EmbeddingVector | undefined)[] = new Array(count).fill(undefined);
	await mapInTurns(items, (raw, place) => {
		const item = asObject(raw);
		const index = asCount(item?.index ?? place, count - 1);
		const vector = vectorOf(item?.embedding);
		if (index === undefined || vectors[index] !== undefined || vector === undefined)
			throw unreadableAnswer("an embedding that is no vector, or whose index is taken");
		vectors[index] = base64 ? base64Of(vector) : vector;
	});
	return { vectors: vectors as EmbeddingVector[], usage: usageOfInput(body?.usage, headers) };
}

function vectorOf(value: unknown): readonly number[] | undefined {
	const text = asText(value);
	if (text !== undefined) return decoded(text);
	const list = asArray(value);
	if (list === undefined || list.length === 0 || list.length > VECTOR_MAX) return undefined;
	// A server without pooling sends the vector inside a list with one row.
	if (list.length === 1 && Array.isArray(list[0])) return vectorOf(list[0]);
	// A number such as 1e999 parses to Infinity, which JSON.stringify would write as `null`.
	for (const number of list) if (!Number.isFinite(number)) return undefined;
	return list as readonly number[];
}

function base64Of(vector: readonly number[]): string {
	const bytes = Buffer.allocUnsafe(vector.length * 4);
	for (let at = 0; at < vector.length; at += 1) bytes.writeFloatLE(vector[at] as number, at * 4);
	return bytes.toString("base64");
}

/** Decodes base64 of little-endian float32, which some servers send although numbers were requested. */
function decoded(base64: string): readonly number[] | undefined {
	if (base64.length > VECTOR_MAX * 6) return undefined;
	const bytes = Buffer.from(base64, "base64");
	if (bytes.length === 0 || bytes.length % 4 !== 0) return undefined;
	const numbers: number[] = [];
	for (let at = 0; at < bytes.length; at += 4) numbers.push(bytes.readFloatLE(at));
	return numbers.every(Number.isFinite) ? numbers : undefined;
}
