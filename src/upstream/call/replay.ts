import { Fault } from "../../base/fault.ts";
import type { Log } from "../../base/log.ts";
import type { Pool } from "../replicas/pool.ts";
import type { Replica } from "../replicas/replica.ts";
import type { Ticket } from "../replicas/ticket.ts";
import type { CallContext } from "./attempt.ts";
import { connectionErrorCode, isRefused, UpstreamFailure, type UpstreamFailureKind } from "./failure.ts";

/** Maximum number of replicas that may begin to process one request, the first included. */
const ATTEMPTS_MAX = 3;
/** Maximum number of calls per request, including calls that a replica refused without processing. */
const CALLS_MAX = 8;

/** After this many yields a batch line keeps its place, so that it can finish. */
const YIELDS_MAX = 3;

const NONE: ReadonlySet<Replica> = new Set();
const NOTHING_FAILED: readonly Failed[] = [];

export interface RequestTries<Came, Result = Came> {
	/** Sends the request. May reject only before output is delivered. `asked` aborts when a request needs the place. */
	send(ticket: Ticket, freshConnection: boolean, asked: AbortSignal | undefined): Promise<Came>;
	came(came: Came): Result;
	/** Omits the output limit from now on. False if there was none, or if the server needs it. */
	dropLimit?(): boolean;
	/** Frees the place and returns the UpstreamFailure; returns the error itself if no replica caused it. */
	failureOf(error: unknown): unknown;
}

/**
 * Sends a request to one replica after another until one answers. Occupies a free place in its first step. If two
 * replicas that answer other requests fail on this one, and again when it is repeated, the request is to blame.
 */
export async function sendWithReplays<Came, Result>(
	pool: Pool,
	log: Log,
	context: CallContext,
	tries: RequestTries<Came, Result>,
): Promise<Result> {
	const { routed, signal, accountId, patient = false } = context;
	let failed: readonly Failed[] = NOTHING_FAILED;
	let exclude = NONE;
	let freshConnection = false;
	let yields = 0;
	for (;;) {
		const asking = patient && yields < YIELDS_MAX ? new AbortController() : undefined;
		const place = pool.acquire({ routed, exclude, signal, accountId, patient, onAsked: asking && abortOf(asking) });
		const ticket = place instanceof Promise ? await leaving(place, signal) : place;
		try {
			const result = tries.came(await tries.send(ticket, freshConnection, asking?.signal));
			// A replica answered the request, so the earlier failures were the other replicas' own.
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
			if (error.countsLimit && !signal.aborted && tries.dropLimit?.() === true) {
				// Stays with this replica: without an output limit, one with a longer context could exceed the reservation.
				exclude = new Set(pool.replicas().filter((other) => other !== replica));
				continue;
			}
			logFailure(log, context, replica, error);
			failed = [...failed, { ticket, failure: error }];
			if (isRequestsFault(failed)) throw unanswerable(failed, error, await pool.failedRequests.isRepeated(context));
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
			else if (isRequestsFault(failed, pool.answeredAtMs()))
				throw unanswerable(failed, error, await pool.failedRequests.isRepeated(context));
			// Reports a server's failure, which may be temporary, rather than one that the operator must fix.
			else throw failed.findLast(({ failure }) => failure.kind !== "misconfigured")?.failure ?? error;
		}
	}
}

/** Kinds of failure whose detail text comes from the gateway, not from the model server. */
const OWN_TEXT: ReadonlySet<UpstreamFailureKind> = new Set([
	"timeout",
	"unreachable",
	"unreadable",
	"died",
	"aborted",
	"stopping",
	"crowded",
]);

/** Logs a failure without the server's text, which may repeat the prompt. The server's own log has the text. */
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

/** A separate function: a closure in the loop would keep the loop's variables for every request. */
const abortOf =
	(asking: AbortController): (() => void) =>
	() =>
		asking.abort();

interface Failed {
	readonly ticket: Ticket;
	readonly failure: UpstreamFailure;
}

/** True if another replica may be tried. A replica that refused the request without processing it does not count. */
function mayGoOn(failed: readonly Failed[]): boolean {
	const taken = failed.filter(({ failure }) => !turnedAway(failure)).length;
	return taken < ATTEMPTS_MAX && failed.length < CALLS_MAX;
}

/** True if the server is busy or refuses the gateway's key, or if no process listens at the address. */
function turnedAway({ kind, cause }: UpstreamFailure): boolean {
	return kind === "busy" || kind === "misconfigured" || (kind === "unreachable" && isRefused(cause));
}

/** Failures that the request itself may have caused: the server accepted it and failed later. */
const BY_REQUEST: ReadonlySet<UpstreamFailureKind> = new Set(["failed", "unreadable", "died"]);

/**
 * True if two replicas failed after accepting the request, and answered other requests after their last failure. If no
 * further replica is left, an answer of any replica (`answeredAtMs`) suffices.
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

/** Clears the replicas' breakers of these failures. Only a repetition blames the request: one may be chance. */
function unanswerable(failed: readonly Failed[], cause: UpstreamFailure, isRepeated: boolean): UpstreamFailure {
	for (const { ticket } of failed) ticket.judge("neutral");
	if (!isRepeated) return cause;
	return new UpstreamFailure("unanswerable", { private: "two replicas failed on the same request again", cause });
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

/** True also for a reused connection that the server had closed, because it fails with the same code. */
function brokeBeforeAnswer(failure: UpstreamFailure): boolean {
	return failure.kind === "unreachable" && connectionErrorCode(failure.cause) === "ECONNRESET";
}

/** Rejects with `aborted` for a client that disconnects in the queue, as for one that disconnects later. */
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
