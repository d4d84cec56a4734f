import { Fault } from "../../base/fault.ts";
import type { Log } from "../../base/log.ts";
import type { Pool } from "../replicas/pool.ts";
import type { Replica } from "../replicas/replica.ts";
import type { Ticket } from "../replicas/ticket.ts";
import type { CallContext } from "./attempt.ts";
import { connectionCode, isRefused, UpstreamFailure, type UpstreamFailureKind } from "./failure.ts";

/** Replicas that may start on one request, the first one included. */
const ATTEMPTS_MAX = 3;
/** Calls for one request, those that a replica turned away included. */
const CALLS_MAX = 8;

/** Times that a batch line yields its place; after that it keeps it, or it might never finish. */
const YIELDS_MAX = 3;

const NONE: ReadonlySet<Replica> = new Set();
const NOTHING_FAILED: readonly Failed[] = [];

export interface Tries<Came, Result = Came> {
	/** Sends the request. Must reject only while nothing was delivered. `asked` aborts when a request wants the place. */
	send(ticket: Ticket, freshConnection: boolean, asked: AbortSignal | undefined): Promise<Came>;
	came(came: Came): Result;
	/** Returns the UpstreamFailure of an error, with the place free again, or an error that no replica caused. */
	failureOf(error: unknown): unknown;
}

/**
 * Sends a request to one replica after another until one delivers a result. A free place is taken before this function
 * first yields. A request on which two replicas fail while they answer others is itself at fault.
 */
export async function withReplays<Came, Result>(
	pool: Pool,
	log: Log,
	context: CallContext,
	tries: Tries<Came, Result>,
): Promise<Result> {
	const { affinity, signal, accountId, patient = false } = context;
	let failed: readonly Failed[] = NOTHING_FAILED;
	let exclude = NONE;
	let freshConnection = false;
	let yields = 0;
	for (;;) {
		const asking = patient && yields < YIELDS_MAX ? new AbortController() : undefined;
		const place = pool.acquire({ affinity, exclude, signal, accountId, patient, onAsked: asking && abortOf(asking) });
		const ticket = place instanceof Promise ? await leaving(place, signal) : place;
		try {
			const result = tries.came(await tries.send(ticket, freshConnection, asking?.signal));
			// The same request was answered here, so the request did not cause the earlier failures.
			for (const other of failed) other.ticket.judge(other.ticket.replica === ticket.replica ? "neutral" : "failed");
			return result;
		} catch (thrown) {
			const error = tries.failureOf(thrown);
			if (!(error instanceof UpstreamFailure)) {
				ticket.release("neutral");
				throw error;
			}
			if (error.kind === "yielded") {
				yields += 1;
				continue;
			}
			const { replica } = ticket;
			logFailure(log, context, replica, error);
			failed = [...failed, { ticket, failure: error }];
			if (isRequestsFault(failed)) throw unanswerable(failed);
			if (!replayable(error) || signal.aborted) throw error;
			const others = new Set(exclude).add(replica);
			if (mayGoOn(failed) && pool.hasNext({ exclude: others, accountId, patient })) {
				exclude = others;
				freshConnection = false;
			} else if (
				mayGoOn(failed) &&
				!freshConnection &&
				brokeBeforeAnswer(error) &&
				pool.hasNext({ exclude, accountId, patient })
			)
				freshConnection = true;
			else throw isRequestsFault(failed, pool.answeredAtMs()) ? unanswerable(failed) : error;
		}
	}
}

/** Kinds whose detail is this service's own text. */
const OWN_TEXT: ReadonlySet<UpstreamFailureKind> = new Set([
	"timeout",
	"unreachable",
	"unreadable",
	"died",
	"aborted",
	"stopping",
	"crowded",
]);

/** Leaves out a server's text, which may repeat the prompt; its own log has it under the same request id. */
function logFailure(log: Log, { requestId, accountId }: CallContext, replica: Replica, failure: UpstreamFailure): void {
	const { kind, status } = failure;
	const detail = status === undefined && OWN_TEXT.has(kind) ? { detail: failure.private } : {};
	const fields = { request: requestId, account: accountId, replica: replica.alias, kind, status, ...detail };
	if (kind === "misconfigured") {
		replica.noteRefusal();
		log.warn("a model server refuses the gateway's requests", fields);
	} else if (kind === "aborted" || kind === "stopping" || kind === "rejected" || kind === "context_length")
		log.debug("a call to a model server ended early", fields);
	else log.info("a call to a model server failed", fields);
}

/** A separate function: a closure in the loop would keep the loop's variables on the heap for each request. */
function abortOf(asking: AbortController): () => void {
	return () => asking.abort();
}

interface Failed {
	readonly ticket: Ticket;
	readonly failure: UpstreamFailure;
}

/** A replica that turned the request away did no work for it and says nothing about the remaining ones. */
function mayGoOn(failed: readonly Failed[]): boolean {
	const taken = failed.filter(({ failure }) => !turnedAway(failure)).length;
	return taken < ATTEMPTS_MAX && failed.length < CALLS_MAX;
}

/** The server is busy, refuses our credentials, or nothing listens there. */
function turnedAway({ kind, cause }: UpstreamFailure): boolean {
	return kind === "busy" || kind === "misconfigured" || (kind === "unreachable" && isRefused(cause));
}

/** Failures that a request can cause: the server accepted it and failed afterwards. */
const BY_REQUEST: ReadonlySet<UpstreamFailureKind> = new Set(["failed", "unreadable", "died"]);

/**
 * Whether two replicas failed after accepting the request, with no other failure at either since its last answer.
 * Without a further replica, an answer of any since then (`answeredAtMs`) counts too.
 */
function isRequestsFault(failed: readonly Failed[], answeredAtMs = Number.NEGATIVE_INFINITY): boolean {
	const replicas = new Set<Replica>();
	for (const { ticket, failure } of failed) {
		const otherAtMs = ticket.otherFailureAtMs();
		if (BY_REQUEST.has(failure.kind) && (otherAtMs === undefined || otherAtMs < answeredAtMs))
			replicas.add(ticket.replica);
	}
	return replicas.size > 1;
}

/** The failures reach no breaker. */
function unanswerable(failed: readonly Failed[]): UpstreamFailure {
	for (const { ticket } of failed) ticket.judge("neutral");
	const cause = failed.at(-1)?.failure;
	return new UpstreamFailure("unanswerable", { private: "two replicas failed on the same request", cause });
}

function replayable(failure: UpstreamFailure): boolean {
	switch (failure.kind) {
		case "unreachable":
		case "unreadable":
		case "busy":
		case "failed":
		case "died":
		case "misconfigured":
			return true;
		default:
			return false;
	}
}

/** A kept-alive connection that the server had closed fails exactly like this. */
function brokeBeforeAnswer(failure: UpstreamFailure): boolean {
	return failure.kind === "unreachable" && connectionCode(failure.cause) === "ECONNRESET";
}

/** A client that leaves the queue is `aborted`, like one that leaves later. */
async function leaving(place: Promise<Ticket>, signal: AbortSignal): Promise<Ticket> {
	try {
		return await place;
	} catch (error) {
		if (signal.aborted && !(error instanceof Fault)) {
			throw new UpstreamFailure("aborted", { private: "the caller left the queue", cause: error });
		}
		throw error;
	}
}
