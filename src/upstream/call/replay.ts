import { Fault } from "../../base/fault.ts";
import type { Log } from "../../base/log.ts";
import type { Pool, Ticket } from "../replicas/pool.ts";
import type { Replica } from "../replicas/replica.ts";
import type { CallContext } from "./attempt.ts";
import { UpstreamFailure } from "./failure.ts";
import { connectionCode } from "./upstream-error.ts";

/** Calls to replicas that one request may cost, the first one included. */
const ATTEMPTS_MAX = 3;

const NONE: ReadonlySet<Replica> = new Set();

/**
 * Runs `attempt` on one replica after the other until one gives something that can be delivered. `attempt` must reject
 * only while nothing has been. It is called before this function first yields if a place is free. What the
 * request itself is at fault for, and what ran into a deadline, is not tried again.
 */
export async function withReplays<T>(
	deps: { pool: Pool; log: Log },
	context: CallContext,
	attempt: (ticket: Ticket, freshConnection: boolean) => Promise<T>,
): Promise<T> {
	const { pool, log } = deps;
	const { affinity, signal, requestId } = context;
	let exclude = NONE;
	let freshConnection = false;
	for (let attempts = 1; ; attempts += 1) {
		const place = pool.acquire({ affinity, exclude, signal });
		const ticket = place instanceof Promise ? await leaving(place, signal) : place;
		try {
			return await attempt(ticket, freshConnection);
		} catch (error) {
			if (!(error instanceof UpstreamFailure)) {
				ticket.release("neutral");
				throw error;
			}
			const { replica } = ticket;
			note(log, requestId, replica, error);
			if (attempts >= ATTEMPTS_MAX || !replayable(error) || signal.aborted) throw error;
			const others = new Set(exclude).add(replica);
			if (pool.hasUsable(others)) {
				exclude = others;
				freshConnection = false;
			} else if (!freshConnection && brokeBeforeAnswer(error) && pool.hasUsable(exclude)) freshConnection = true;
			else throw error;
		}
	}
}

/** Kinds whose detail is in our own words. */
const OURS: ReadonlySet<string> = new Set(["timeout", "unreachable", "unreadable", "died", "aborted"]);

/**
 * The detail of a status or of an error event is the upstream's own text, which may repeat the prompt: it stays out of
 * the log. The upstream's log has it under the same request id.
 */
function note(log: Log, request: string, replica: Replica, failure: UpstreamFailure): void {
	const { kind, status } = failure;
	const ours = status === undefined && OURS.has(kind);
	const fields = { request, replica: replica.alias, kind, status, ...(ours ? { detail: failure.private } : {}) };
	if (kind === "misconfigured") log.warn("an upstream refuses us", fields);
	else if (kind === "aborted" || kind === "rejected" || kind === "context_length")
		log.debug("an upstream call ended", fields);
	else log.info("an upstream call failed", fields);
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
