import { Fault } from "../../base/fault.ts";
import type { Pool } from "../replicas/pool.ts";
import type { Replica } from "../replicas/replica.ts";
import type { Ticket } from "../replicas/ticket.ts";
import type { CallContext } from "./attempt.ts";
import type { CallNotes } from "./call-notes.ts";
import { UpstreamFailure, type UpstreamFailureKind } from "./failure.ts";
import { connectionCode, isRefused } from "./upstream-error.ts";

/** Replicas that one request may be given to, the first one included. */
const ATTEMPTS_MAX = 3;
/** Calls that one request may cost, those to replicas that turned it away included. */
const CALLS_MAX = 8;

/** How often a line of a batch gives its place up; then it stays to its end, or it might never come to one. */
const YIELDS_MAX = 3;

const NONE: ReadonlySet<Replica> = new Set();
const NOTHING_FAILED: readonly Failed[] = [];

/** One request, as it is tried on one replica after the other. */
export interface Tries<Came, Result = Came> {
	/**
	 * Sends it to the ticket's replica. Gives what can be delivered, and must reject only while nothing has
	 * been. `asked` aborts when the place is asked for.
	 */
	send(ticket: Ticket, freshConnection: boolean, asked: AbortSignal | undefined): Promise<Came>;
	/** It came. */
	came(came: Came): Result;
	/** It did not: an UpstreamFailure, with the place free again, or what is none of the replica's doing. */
	failureOf(error: unknown): unknown;
}

/**
 * Sends a request to one replica after the other until one gives something that can be delivered. If a place is free, it is
 * taken before this function first yields. What the request itself is at fault for, and what ran into a deadline, is not
 * tried again; one that two replicas fail on while they answer others is at fault itself (`unanswerable`).
 */
export async function withReplays<Came, Result>(
	pool: Pool,
	notes: CallNotes,
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
		const place = pool.acquire({
			affinity,
			exclude,
			signal,
			accountId,
			patient,
			onAsked: asking && abortOf(asking),
		});
		const ticket = place instanceof Promise ? await leaving(place, signal) : place;
		try {
			const result = tries.came(await tries.send(ticket, freshConnection, asking?.signal));
			// The same request was answered here, so what failed before was not the request.
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
			notes.failed(context, replica, error);
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

/** A function of its own: a closure in the loop would make each request keep its variables on the heap. */
function abortOf(asking: AbortController): () => void {
	return () => asking.abort();
}

interface Failed {
	readonly ticket: Ticket;
	readonly failure: UpstreamFailure;
}

/** A replica that turned it away has done nothing for it, and says nothing of those that are left. */
function mayGoOn(failed: readonly Failed[]): boolean {
	const taken = failed.filter(({ failure }) => !turnedAway(failure)).length;
	return taken < ATTEMPTS_MAX && failed.length < CALLS_MAX;
}

/** It is busy, refuses us, or nobody listens there. */
function turnedAway({ kind, cause }: UpstreamFailure): boolean {
	return kind === "busy" || kind === "misconfigured" || (kind === "unreachable" && isRefused(cause));
}

/** Failures that a request can bring about: the server took it, and then something went wrong. */
const BY_REQUEST: ReadonlySet<UpstreamFailureKind> = new Set(["failed", "unreadable", "died"]);

/**
 * Two replicas took it and failed, and nothing else has failed at either since it last answered. Where there is none
 * left to tell the difference, it counts as well that some replica has answered since (`answeredAtMs`).
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

/** No breaker is to hear of it. */
function unanswerable(failed: readonly Failed[]): UpstreamFailure {
	for (const { ticket } of failed) ticket.judge("neutral");
	const cause = failed.at(-1)?.failure;
	return new UpstreamFailure("unanswerable", { private: "two replicas failed on it alike", cause });
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

/** A kept-alive connection that the server closed meanwhile looks like this, and like nothing else. */
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
