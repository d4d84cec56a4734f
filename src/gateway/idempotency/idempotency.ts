import type { Admission } from "../../admission/admission.ts";
import { type Clock, sleep } from "../../base/clock.ts";
import { createFairPool, type FairPool } from "../../base/fair-pool.ts";
import { Fault } from "../../base/fault.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import { checkKey } from "../../keys/access.ts";
import { readBearerText } from "../../keys/bearer.ts";
import type { KeyEntry } from "../../keys/key-entry.ts";
import { formatUsd } from "../../money/nano-usd.ts";
import { type BodyHold, createBodyMemory } from "../body/body-memory.ts";
import type { BodyReads } from "../body/body-reads.ts";
import { readBytes } from "../body/bytes-body.ts";
import { type Connection, IDLE_TIMEOUT_S } from "../connection.ts";
import { dropRateHeaders } from "../headers.ts";
import type { UnreadAnswers } from "../serve/unread-answers.ts";
import { readShortAnswer, recordStream } from "./recorded-stream.ts";
import type { ClaimOutcome, ClaimStore, IdempotencyClaim, RunningClaims } from "./running.ts";
import { type AnswerCipher, createAnswerCipher, hashClaimId, type StoredAnswer } from "./seal.ts";

/** A request that has claimed its `Idempotency-Key` and whose answer is not recorded yet. */
export interface ClaimedRequest {
	readonly claim: IdempotencyClaim;
	readonly seal: AnswerCipher;
	readonly connection: Connection;
}

/** Result of `claim`: the claim and the body to parse, or the first answer to replay. */
export type ClaimStep =
	| { readonly replay: Response; readonly claimed?: undefined }
	| { readonly replay?: undefined; readonly claimed: ClaimedRequest; readonly bytes: Uint8Array<ArrayBuffer> };

/** Runs between reading the body and admission, for requests with an `Idempotency-Key`. */
export type Idempotency = ReturnType<typeof createIdempotency>;

export const IDEMPOTENCY_HEADER = "idempotency-key";
const KEY = /^[\x21-\x7e]{1,255}$/;
/** Largest answer that is kept. Repeating a request with a larger answer returns 409 with the cost. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
/** Memory for copies of running streams, enough for some hundred. A stream that exceeds it is sent but not kept. */
const COPY_LIMITS = { bodyMemoryBytesMax: 256 * 1024 * 1024, bodyMemoryAccountBytesMax: 64 * 1024 * 1024 };
const WAIT_MS_MAX = 60_000;
const WAITING_MAX = 1_000;
const WAITING_SHARE = 1 / 4;
const PAUSE_MS_MIN = 50;
const PAUSE_MS_MAX = 1_000;

/**
 * A request with the same `Idempotency-Key` and body gets the first answer without a charge, from any instance, for 24
 * hours. A failed or aborted request is charged for the delivered output, and runs again if it is repeated.
 */
export function createIdempotency(deps: {
	claims: ClaimStore;
	running: RunningClaims;
	admission: Pick<Admission, "checkOpen">;
	bodyReads: BodyReads;
	unreadAnswers: UnreadAnswers;
	clock: Clock;
	limits(): Pick<ServiceLimits, "bodyBytesMax">;
}) {
	const { running, unreadAnswers, clock } = deps;
	const copies = createBodyMemory({ limits: () => COPY_LIMITS });
	const waits = createFairPool({ size: () => WAITING_MAX, share: () => WAITING_SHARE });
	const passed = (body: Uint8Array, { accountId }: IdempotencyClaim, connection: Connection) =>
		unreadAnswers.passedBytes(body, { accountId, connection });

	return {
		/**
		 * Reads the body and claims the key, or waits for the request that has claimed it. `uuid`: from `firstAttemptUuid`.
		 * Faults: invalid_request, idempotency_mismatch, conflict, service_unavailable, and those of `readBytes`.
		 */
		async claim(
			header: string,
			connection: Connection,
			key: KeyEntry,
			uuid: string,
			held: BodyHold,
		): Promise<ClaimStep> {
			if (!KEY.test(header))
				throw new Fault("invalid_request", "`Idempotency-Key` must be 1 to 255 printable characters.");
			const { request } = connection;
			const bytes = await readBytes(connection, deps.limits().bodyBytesMax, deps.bodyReads, held);
			// Claims belong to an API key, not to an account, because an account's keys may have different rights.
			const id = hashClaimId(key.id, header);
			const seal = await createAnswerCipher(readBearerText(request.headers), header, id);
			const proof = seal.proof(new URL(request.url).pathname, bytes, request.headers.get("content-type"));
			const claim = { id, accountId: key.accountId, proof, requestUuid: uuid };
			const outcome = await claimOrWait({ ...deps, waits }, claim, connection);
			if (outcome.state === "new") return { claimed: { claim, seal, connection }, bytes };
			if (outcome.state !== "answered") throw refusalOf(outcome);
			const answer = await seal.open(outcome.sealed);
			// A replay is not admitted like other requests: the gate and the key are checked here, after the body is read.
			deps.admission.checkOpen();
			checkKey(key, clock.wallMs());
			return { replay: replayOf(answer, passed(answer.body, claim, connection)) };
		},
		/** Sends the response and keeps a copy if the answer is complete with status 200. Releases the claim otherwise. */
		async record({ claim, seal, connection }: ClaimedRequest, response: Response): Promise<Response> {
			if (response.status !== 200 || response.body === null) {
				running.release(claim);
				return response;
			}
			const headers = [...response.headers];
			if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
				try {
					const body = await readShortAnswer(response.body, ANSWER_BYTES_MAX);
					if (body instanceof ReadableStream) {
						running.keep(claim, null);
						return new Response(body, { status: 200, headers });
					}
					keep(running, claim, seal, { status: 200, headers, body });
					return new Response(passed(body, claim, connection), { status: 200, headers });
				} catch (error) {
					running.release(claim);
					throw error;
				}
			}
			return new Response(recordedStream(response.body, headers, { claim, seal, connection }), {
				status: 200,
				headers,
			});
		},
	};

	/** Sends a stream and copies it. A repeated request that arrives before the copy is stored waits for the copy. */
	function recordedStream(
		body: ReadableStream,
		headers: StoredAnswer["headers"],
		{ claim, seal, connection }: ClaimedRequest,
	): ReadableStream {
		const { signal } = connection.request;
		const copy = copies.hold(claim.accountId);
		const release = () => {
			copy.release();
			running.release(claim);
		};
		// A disconnect before the stream's first read causes no event of the stream, so the request's signal is needed.
		if (signal.aborted) release();
		else signal.addEventListener("abort", release, { once: true });
		return recordStream(body, ANSWER_BYTES_MAX, copy, {
			whole(bytes) {
				signal.removeEventListener("abort", release);
				if (bytes === null) running.keep(claim, null);
				else keep(running, claim, seal, { status: 200, headers, body: bytes });
			},
			broken: release,
		});
	}
}

/** Claims the key; waits up to a minute if its first request is running. Fault service_unavailable without Postgres. */
async function claimOrWait(
	{ claims, running, clock, waits }: { claims: ClaimStore; running: RunningClaims; clock: Clock; waits: FairPool },
	claim: IdempotencyClaim,
	connection: Connection,
): Promise<ClaimOutcome> {
	const untilMs = clock.monotonicMs() + WAIT_MS_MAX;
	for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
		const here = running.find(claim.id);
		if (here !== undefined && here.proof !== claim.proof) return { state: "mismatch" };
		const outcome: ClaimOutcome = here === undefined ? await claimed(claims, running, claim) : { state: "running" };
		if (outcome.state === "new") running.begin(claim);
		if (outcome.state !== "running" || clock.monotonicMs() >= untilMs || connection.request.signal.aborted)
			return outcome;
		if (!waits.fits(claim.accountId, 1)) return outcome;
		waits.take(claim.accountId);
		connection.setIdleTimeout(0);
		try {
			await Promise.race([sleep(clock, pauseMs), ...(here === undefined ? [] : [here.ended])]);
		} finally {
			waits.giveBack(claim.accountId);
			connection.setIdleTimeout(IDLE_TIMEOUT_S);
		}
	}
}

async function claimed(claims: ClaimStore, running: RunningClaims, claim: IdempotencyClaim): Promise<ClaimOutcome> {
	try {
		return await claims.claim(claim);
	} catch (cause) {
		running.takeBack(claim);
		throw new Fault("service_unavailable", "The `Idempotency-Key` cannot be checked at the moment. Please try again.", {
			cause,
			private: "an idempotency key could not be claimed",
			retryAfterS: 1,
		});
	}
}

function refusalOf(outcome: Exclude<ClaimOutcome, { state: "new" | "answered" }>): Fault {
	if (outcome.state === "mismatch")
		return new Fault(
			"idempotency_mismatch",
			"This `Idempotency-Key` was used with another request body. Use a new key.",
		);
	if (outcome.state === "running")
		return new Fault("conflict", "The first request with this `Idempotency-Key` is still running. Retry later.", {
			retryAfterS: 1,
		});
	const first = `The first request with this \`Idempotency-Key\` (req_${outcome.requestUuid.replaceAll("-", "")})`;
	const became =
		outcome.state === "lost" ? "was sent, but its answer was lost" : "was answered, but its answer was not stored";
	const charge = `It was charged USD ${formatUsd(outcome.charged)}.`;
	return new Fault("conflict", `${first} ${became}. ${charge} To send the request again, use a new key.`);
}

/** Omits the first request's rate limit headers; `setRateHeaders` adds the present ones. */
function replayOf({ status, headers }: StoredAnswer, body: BodyInit): Response {
	const replay = new Headers(headers.map(([name, value]) => [name, value]));
	dropRateHeaders(replay);
	replay.set("idempotent-replayed", "true");
	return new Response(body, { status, headers: replay });
}

function keep(running: RunningClaims, claim: IdempotencyClaim, seal: AnswerCipher, answer: StoredAnswer): void {
	const isKept = answer.body.length <= ANSWER_BYTES_MAX;
	(isKept ? seal.seal(answer) : Promise.resolve(null)).then(
		(sealed) => running.keep(claim, sealed),
		() => running.keep(claim, null),
	);
}
