/** One call without a stream to one replica. Owns the replica's place and the connection until the end. */
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import { isError } from "../chat/chat-reader.ts";
import type { Ticket } from "../replicas/pool.ts";
import type { Replica } from "../replicas/replica.ts";
import { UpstreamFailure } from "../reply.ts";
import { asObject, parseJson } from "../wire-value.ts";
import { createCallGuard } from "./guard.ts";
import { ANSWER_BYTES_MAX, assertAnswered, type CallDeps, discard, postUpstream, reachable, readText } from "./post.ts";

/** One POST and how its answer is read. */
export interface UnaryPost<Answer> {
	/** Under the replica's base address, or at its server's root. */
	readonly path: string;
	readonly atRoot?: boolean;
	/** JSON text, or a form. */
	readonly body: string | FormData;
	/** The largest answer, bytes; default 64 MB. */
	readonly bytesMax?: number;
	/** `body` is parsed JSON and no error. Throws UpstreamFailure at nonsense. */
	read(body: unknown, headers: Headers): Answer;
}

export type Send = <Answer>(post: UnaryPost<Answer>) => Promise<Answer>;

/** A request that is answered in one piece; `run` may take several posts to one replica for it. */
export interface UnaryCall<Reply> {
	/** Aborts when the client leaves. */
	readonly signal: AbortSignal;
	readonly affinity: string | undefined;
	readonly requestId: string;
	run(send: Send, replica: Replica): Promise<Reply>;
}

export interface UnaryOptions<Reply> {
	readonly limits: ServiceLimits;
	readonly call: UnaryCall<Reply>;
	/** Monotonic time at which the request began, attempts before this one included. */
	readonly startedMs: number;
	readonly freshConnection: boolean;
}

/** Rejects with UpstreamFailure; the place is free again either way. */
export async function callUnary<Reply>(deps: CallDeps, ticket: Ticket, options: UnaryOptions<Reply>): Promise<Reply> {
	const { replica } = ticket;
	const { call, limits, startedMs, freshConnection } = options;
	const { signal, requestId } = call;
	const guard = createCallGuard(deps.clock, {
		limits,
		startedMs,
		signal,
		events: false,
		reachable: () => reachable(deps, replica, limits),
	});
	let response: Response | undefined;
	const send: Send = async ({ path, atRoot = false, body, bytesMax = ANSWER_BYTES_MAX, read }) => {
		const post = { path, atRoot, body, accept: "application/json", requestId, freshConnection } as const;
		response = await postUpstream(deps, replica, guard, post);
		guard.headersCame();
		await assertAnswered(response, replica);
		const text = await readText(response, bytesMax);
		const parsed = parseJson(text);
		if (parsed === undefined) throw nonsense("an answer that is not JSON");
		const object = asObject(parsed);
		if (object !== undefined && isError(object)) throw replica.dialect.failureOfError(object);
		return read(parsed, response.headers);
	};
	try {
		const reply = await call.run(send, replica);
		ticket.release("ok");
		return reply;
	} catch (error) {
		const failure = guard.failureOf(error);
		guard.abort();
		discard(response);
		ticket.release(guard.outcomeOf(failure));
		throw failure;
	} finally {
		guard.end();
	}
}

/** An answer that makes no sense: another replica may do better. */
export function nonsense(detail: string): UpstreamFailure {
	return new UpstreamFailure("unreachable", { private: detail });
}
