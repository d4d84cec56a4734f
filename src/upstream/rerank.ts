import type { CallContext } from "./call/attempt.ts";
import { unreadableAnswer } from "./call/failure.ts";
import type { UnaryCall, UnaryPost } from "./call/unary.ts";
import type { Replica } from "./replicas/replica.ts";
import { type ReportedUsage, usageOfInput } from "./usage.ts";
import { asArray, asCount, asObject } from "./wire-value.ts";

export interface RerankRequest {
	readonly query: string;
	readonly documents: readonly string[];
	readonly fields: Readonly<Record<string, unknown>>;
}

export interface RankedDocument {
	readonly index: number;
	readonly score: number;
}

export interface RerankReply {
	readonly results: readonly RankedDocument[];
	/** Undefined if the server reported no token count. */
	readonly usage: ReportedUsage | undefined;
}

/** Requests all scores: servers differ in `top_n` and `return_documents`, so the gateway applies these itself. */
export function rerankCall(request: RerankRequest, context: CallContext): UnaryCall<RerankReply> {
	const { documents } = request;
	return {
		context,
		run: (ask, replica) =>
			ask.post({
				...postOf(replica, request),
				read: (parsed, headers) => readRanking(parsed, headers, documents.length),
			}),
	};
}

function postOf(replica: Replica, request: RerankRequest): Pick<UnaryPost<never>, "path" | "atRoot" | "body"> {
	const { query, documents, fields } = request;
	if (replica.dialect.rerankForm === "texts") {
		const body = { query, texts: documents, raw_scores: false, return_text: false };
		return { path: "/rerank", atRoot: true, body: JSON.stringify(body) };
	}
	const body = { ...fields, model: replica.spec().model, query, documents };
	return { path: "/rerank", body: JSON.stringify(body) };
}

/** Reads Cohere's `{results: [{index, relevance_score}]}`, or the list with `score` that TEI and SGLang send. */
function readRanking(parsed: unknown, headers: Headers, count: number): RerankReply {
	const body = asObject(parsed);
	const items = asArray(parsed) ?? asArray(body?.results) ?? asArray(body?.data);
	if (items === undefined || items.length === 0 || items.length > count)
		throw unreadableAnswer("a ranking that does not fit its documents");
	const seen = new Set<number>();
	const results = items.map((raw) => {
		const item = asObject(raw);
		const index = asCount(item?.index, count - 1);
		const score = item?.relevance_score ?? item?.score;
		if (index === undefined || seen.has(index) || typeof score !== "number" || !Number.isFinite(score))
			throw unreadableAnswer("a ranked document without score, or whose index is taken");
		seen.add(index);
		return { index, score };
	});
	results.sort((a, b) => b.score - a.score || a.index - b.index);
	return { results, usage: usageOfInput(body?.usage, headers) };
}
