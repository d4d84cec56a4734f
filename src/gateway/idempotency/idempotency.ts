import { sleep } from "../../base/clock.ts";
import { Fault } from "../../base/fault.ts";
import { checkAccess, checkKey } from "../../keys/access.ts";
import { bearerText } from "../../keys/bearer.ts";
import type { KeyEntry } from "../../keys/key-entry.ts";
import { formatUsd } from "../../money/nano-usd.ts";
import type { BodyHold } from "../body/body-memory.ts";
import { readBytes } from "../body/bytes-body.ts";
import type { Connection } from "../connection.ts";
import { connectionWith, IDLE_TIMEOUT_S } from "../connection.ts";
import { renewRateHeaders } from "../headers.ts";
import type { ServeDeps } from "../serve/context.ts";
import { createContext, firstAttemptUuid } from "../serve/context.ts";
import { refuse } from "../serve/refuse.ts";
import type { ServedEndpoint } from "../serve/served-endpoint.ts";
import type { Claim, ClaimOutcome, Claims } from "./claims.ts";
import { readUpTo, recordStream } from "./recorded-stream.ts";
import type { Running } from "./running.ts";
import type { Seal, StoredAnswer } from "./seal.ts";
import { claimIdOf, createSeal } from "./seal.ts";
import type { StreamCopies } from "./stream-copies.ts";

/** What is known of idempotency keys. */
export interface Idempotency {
	readonly claims: Claims;
	readonly running: Running;
	readonly copies: StreamCopies;
}

const IDEMPOTENCY_HEADER = "idempotency-key";
/** Printable ASCII. */
const KEY = /^[\x21-\x7e]{1,255}$/;
/** A larger answer is not kept: its repetition hears 409 with what it cost. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;
/** How long a repetition waits for the first request. */
const WAIT_MS_MAX = 60_000;
const WAITING_MAX = 1_000;
const PAUSE_MS_MIN = 50;
const PAUSE_MS_MAX = 1_000;

/**
 * Lets a client repeat a request that it does not know the outcome of: the same `Idempotency-Key` with the same body
 * replays the first answer at no charge, whichever instance hears it. Whole answers with status 200 are kept, for a day;
 * what failed, or broke off because the client left, cost what was delivered and runs anew. A request without the header
 * pays one look at its headers, one with it a round trip to Postgres.
 */
export function idempotent(deps: ServeDeps, idempotency: Idempotency, endpoint: ServedEndpoint) {
	return (connection: Connection): Promise<Response> => {
		const header = connection.request.headers.get(IDEMPOTENCY_HEADER);
		if (header === null) return endpoint.answer(deps, connection);
		return once(
			deps,
			idempotency,
			endpoint,
			connectionWith(connection, connection.request, firstAttemptUuid()),
			header,
		);
	};
}

async function once(
	deps: ServeDeps,
	idempotency: Idempotency,
	endpoint: ServedEndpoint,
	connection: Connection & { readonly requestUuid: string },
	header: string,
): Promise<Response> {
	const { request } = connection;
	const context = createContext(endpoint.name, connection, deps.clock);
	let seal: Seal;
	let claim: Claim;
	let key: KeyEntry;
	let body: Uint8Array<ArrayBuffer>;
	let held: BodyHold | undefined;
	const passed = (bytes: Uint8Array) => deps.unreadAnswers.passedBytes(bytes, { accountId: key.accountId, connection });
	try {
		if (!KEY.test(header))
			throw new Fault("invalid_request", "`Idempotency-Key` must be 1 to 255 printable characters.");
		const known = deps.authenticate(connection);
		key = known instanceof Promise ? await known : known;
		context.key = key;
		checkAccess(key, deps.clock.wallMs());
		deps.unreadAnswers.check(key.accountId);
		held = deps.bodyMemory.hold(key.accountId);
		body = await readBytes(connection, deps.limits().bodyBytesMax, deps.bodyReads, held);
		// By key and not by account: what one key may ask for another may not be allowed to see.
		const id = claimIdOf(key.id, header);
		seal = await createSeal(bearerText(request.headers), header, id);
		const proof = seal.proof(new URL(request.url).pathname, body, request.headers.get("content-type"));
		claim = { id, accountId: key.accountId, proof, requestUuid: connection.requestUuid };
		const outcome = await claimOrWait(deps, idempotency, claim, connection);
		if (outcome.state === "answered") {
			const answer = await seal.open(outcome.sealed);
			// A replay passes no admission, which looks at gate and key again after the body was read: this is its place.
			deps.admission.checkOpen();
			checkKey(key, deps.clock.wallMs());
			const replay = replayOf(answer, passed);
			renewRateHeaders(replay.headers, deps.admission.rateStanding(key));
			return replay;
		}
		if (outcome.state !== "new") throw refusalOf(outcome);
	} catch (error) {
		const refusal = refuse(deps, context, { error, admitted: false });
		if (context.key !== undefined) renewRateHeaders(refusal.headers, deps.admission.rateStanding(context.key));
		return refusal;
	} finally {
		// The road counts it again, for as long as it needs it.
		held?.release();
	}
	const copy = new Request(request.url, { method: "POST", headers: request.headers, body, signal: request.signal });
	try {
		const response = await endpoint.answer(deps, connectionWith(connection, copy, connection.requestUuid), () => key);
		return await recorded(response, { seal, claim, ...idempotency, signal: request.signal, passed });
	} catch (error) {
		idempotency.running.release(claim);
		throw error;
	}
}

/** Asks until the first request with this key has ended, for a while. Fault service_unavailable without Postgres. */
async function claimOrWait(
	deps: ServeDeps,
	idempotency: Idempotency,
	claim: Claim,
	connection: Connection,
): Promise<ClaimOutcome> {
	const { clock } = deps;
	const { running } = idempotency;
	const untilMs = clock.monotonicMs() + WAIT_MS_MAX;
	for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
		const here = running.find(claim.id);
		if (here !== undefined && here.proof !== claim.proof) return { state: "mismatch" };
		const outcome: ClaimOutcome = here === undefined ? await claimed(idempotency, claim) : { state: "running" };
		if (outcome.state === "new") running.begin(claim);
		if (outcome.state !== "running" || clock.monotonicMs() >= untilMs || connection.request.signal.aborted)
			return outcome;
		if (!running.mayWait(WAITING_MAX)) return outcome;
		connection.setIdleTimeout(0);
		try {
			await running.waiting(Promise.race([sleep(clock, pauseMs), ...(here === undefined ? [] : [here.ended])]));
		} finally {
			connection.setIdleTimeout(IDLE_TIMEOUT_S);
		}
	}
}

async function claimed({ claims, running }: Idempotency, claim: Claim): Promise<ClaimOutcome> {
	try {
		return await claims.claim(claim);
	} catch (cause) {
		running.takeBack(claim);
		throw new Fault("service_unavailable", "The `Idempotency-Key` cannot be checked right now. Please try again.", {
			cause,
			private: "an idempotency key could not be claimed",
			retryAfterS: 1,
		});
	}
}

function refusalOf(outcome: Exclude<ClaimOutcome, { state: "new" | "answered" }>): Fault {
	if (outcome.state === "mismatch")
		return new Fault("idempotency_mismatch", "This `Idempotency-Key` was used for another request.");
	if (outcome.state === "running")
		return new Fault("conflict", "The first request with this `Idempotency-Key` is still running.", { retryAfterS: 1 });
	const first = `The first request with this \`Idempotency-Key\` (req_${outcome.requestUuid.replaceAll("-", "")})`;
	const became =
		outcome.state === "lost"
			? "was sent, and its answer was lost with the instance that served it"
			: "was answered, and its answer is not kept";
	const charge = `It was charged USD ${formatUsd(outcome.charged)}.`;
	return new Fault("conflict", `${first} ${became}. ${charge} To send it again, use another key.`);
}

function replayOf({ status, headers, body }: StoredAnswer, passed: Recording["passed"]): Response {
	const replay = new Headers(headers.map(([name, value]) => [name, value]));
	replay.set("idempotent-replayed", "true");
	return new Response(passed(body), { status, headers: replay });
}

/** One answer on its way out, of which a copy is kept. */
interface Recording extends Pick<Idempotency, "running" | "copies"> {
	readonly seal: Seal;
	readonly claim: Claim;
	readonly signal: AbortSignal;
	/** The body of the answer, counted until it is read. */
	passed(body: Uint8Array): BodyInit;
}

/** Nobody waits for the copy: a repetition that comes before it is written down waits for that. */
async function recorded(response: Response, recording: Recording): Promise<Response> {
	const { running, copies, claim, signal, passed } = recording;
	if (response.status !== 200 || response.body === null) {
		running.release(claim);
		return response;
	}
	const headers = [...response.headers];
	if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
		const body = await readUpTo(response.body, ANSWER_BYTES_MAX);
		if (body instanceof ReadableStream) {
			running.keep(claim, null);
			return new Response(body, { status: 200, headers });
		}
		keep(recording, { status: 200, headers, body });
		return new Response(passed(body), { status: 200, headers });
	}
	const copy = copies.begin(claim.accountId);
	const release = () => {
		copy.letGo();
		running.release(claim);
	};
	// A client that leaves before its stream is first read leaves no other trace.
	if (signal.aborted) release();
	else signal.addEventListener("abort", release, { once: true });
	const stream = recordStream(response.body, ANSWER_BYTES_MAX, copy, {
		whole(body) {
			signal.removeEventListener("abort", release);
			if (body === null) running.keep(claim, null);
			else keep(recording, { status: 200, headers, body });
		},
		broken: release,
	});
	return new Response(stream, { status: 200, headers });
}

function keep({ seal, claim, running }: Recording, answer: StoredAnswer): void {
	const isKept = answer.body.length <= ANSWER_BYTES_MAX;
	(isKept ? seal.seal(answer) : Promise.resolve(null)).then(
		(sealed) => running.keep(claim, sealed),
		() => running.keep(claim, null),
	);
}
