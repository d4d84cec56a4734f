import type { Admission, Admitted } from "../../admission/admission.ts";
import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { hexOf, newRequestId, newUuid, requestIdOf } from "../../base/id.ts";
import type { Log, LogFields } from "../../base/log.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { Model } from "../../catalog/model.ts";
import type { Endpoint } from "../../catalog/request-fields.ts";
import type { KeyEntry } from "../../keys/key-entry.ts";
import type { Refusals } from "../../ops/refusals.ts";
import type { RequestStats } from "../../ops/request-stats.ts";
import type { RequestTrace, Traces } from "../../traces/traces.ts";
import type { CallContext } from "../../upstream/call/attempt.ts";
import type { Upstreams } from "../../upstream/upstreams.ts";
import type { BodyMemory } from "../body/body-memory.ts";
import type { BodyReads } from "../body/body-reads.ts";
import type { Connection, SilentConnections } from "../connection.ts";
import type { Idempotency } from "../idempotency/idempotency.ts";
import type { Authenticate } from "./authenticate.ts";
import type { ModelSpeeds } from "./model-speeds.ts";
import type { OpenStreams } from "./open-streams.ts";
import type { UnreadAnswers } from "./unread-answers.ts";

/** What a request's road uses. */
export interface ServeDeps {
	readonly authenticate: Authenticate;
	readonly catalog: ServedModels;
	/** Undefined for requests from within the process: their `Idempotency-Key` is ignored. */
	readonly idempotency?: Idempotency;
	readonly admission: Admission;
	readonly upstreams: Upstreams;
	readonly clients: ClientSide;
	readonly telemetry: Telemetry;
	readonly clock: Clock;
}

/** The catalogue in force, and the order of models in routes that begin with the fastest. */
export type ServedModels = Pick<Catalog, "current" | "limits"> & Pick<ModelSpeeds, "fastestFirst">;

/** What the gateway holds for the clients' connections. */
export interface ClientSide {
	readonly bodyMemory: BodyMemory;
	readonly bodyReads: BodyReads;
	readonly unreadAnswers: UnreadAnswers;
	readonly openStreams: OpenStreams;
	readonly silentConnections: SilentConnections;
}

export interface Telemetry {
	readonly log: Log;
	/** Undefined where none are wanted. */
	readonly traces?: Traces | undefined;
	/** Counts what was refused before it was admitted, and what is seen of streams. */
	readonly stats: Pick<RequestStats, "refuse" | "gap">;
	/** For the owner of the key to read. */
	readonly refusals: Pick<Refusals, "record">;
}

/** A request from its first moment on. */
export interface RequestContext {
	readonly connection: Connection;
	readonly endpoint: Endpoint;
	/** UUID. */
	readonly uuid: string;
	readonly requestId: string;
	/** The 32 digits of the UUID, for the id of the answer. */
	readonly hex: string;
	/** Monotonic. */
	readonly startedMs: number;
	/** Whether its attempts have ids that follow each other, since an `Idempotency-Key` names the first one. */
	readonly isRepeatable: boolean;
	/** Whether it was admitted for another model of its route before, and so counted against its key's limits. */
	readonly isAgain: boolean;
	/** Then it is settled in the end, and its usage record tells what became of it. */
	isAdmitted: boolean;
	/** Undefined until it is authenticated. */
	key: KeyEntry | undefined;
	/** The model by the name that the request gives it; undefined until it is read. */
	modelName: string | undefined;
	/** Undefined for most: it is in no trace. */
	readonly trace: RequestTrace | undefined;
}

/** Whose request it is, for each line of the log about it. */
export function logFields(context: RequestContext, key = context.key): LogFields {
	return { request: context.requestId, account: key?.accountId, key: key?.id };
}

/** An admitted request on its way. It is settled exactly once, whatever happens. */
export interface Exchange<Input = unknown> {
	readonly context: RequestContext;
	readonly model: Model;
	/** The request, checked and cut to what the deployment honours. */
	readonly input: Input;
	readonly admitted: Admitted;
	/** Unix seconds of the admission. */
	readonly createdS: number;
}

/** What the upstream's part of a request knows of it. */
export function callContext({ context, admitted }: Exchange, signal: AbortSignal, affinity?: string): CallContext {
	return {
		signal,
		affinity,
		requestId: context.requestId,
		uuid: context.uuid,
		accountId: admitted.request.key.accountId,
		patient: context.connection.line !== undefined,
		trace: context.trace,
	};
}

/** `isRepeatable`: the request has an `Idempotency-Key`. */
export function createContext(
	endpoint: Endpoint,
	connection: Connection,
	clock: Clock,
	traces?: Traces,
	isRepeatable = false,
): RequestContext {
	const uuid = isRepeatable ? firstAttemptUuid() : (connection.line?.requestUuid ?? newUuid());
	const hex = hexOf(uuid);
	const trace = traces?.begin(connection.request, endpoint);
	const startedMs = clock.monotonicMs();
	return {
		connection,
		endpoint,
		uuid,
		requestId: requestIdOf(hex),
		hex,
		startedMs,
		isRepeatable,
		isAgain: false,
		isAdmitted: false,
		key: undefined,
		modelName: undefined,
		trace,
	};
}

/** The same request on its way to the next model: a reservation, a usage record and an id of its own. */
export function contextAgain(context: RequestContext, clock: Clock): RequestContext {
	const known = context.isRepeatable ? nextAttemptUuid(context.uuid) : undefined;
	const isAgain = context.isAgain || context.isAdmitted;
	return { ...context, ...newRequestId(known), startedMs: clock.monotonicMs(), isAgain, isAdmitted: false };
}

/** An id whose following 255 belong to the same request: so that what became of it can be found, whichever model answered. */
export function firstAttemptUuid(): string {
	return `${newUuid().slice(0, -2)}00`;
}

function nextAttemptUuid(uuid: string): string {
	const place = Number.parseInt(uuid.slice(-2), 16) + 1;
	assert(place < 256, "a request has fewer attempts than ids");
	return uuid.slice(0, -2) + place.toString(16).padStart(2, "0");
}
