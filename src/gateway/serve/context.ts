import type { Admission, Admitted } from "../../admission/admission.ts";
import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { formatRequestId, newRequestId, newUuid, uuidHex } from "../../base/id.ts";
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

export interface ServeDeps {
	readonly authenticate: Authenticate;
	readonly catalog: ServedModels;
	/** Undefined for requests that this process sends itself; their `Idempotency-Key` is ignored. */
	readonly idempotency?: Idempotency;
	readonly admission: Admission;
	readonly upstreams: Upstreams;
	readonly clients: ClientServices;
	readonly telemetry: RequestTelemetry;
	readonly clock: Clock;
}

/** The current catalogue, and the models' speeds, by which a route can order its models. */
export type ServedModels = Pick<Catalog, "current" | "limits"> & Pick<ModelSpeeds, "fastestFirst">;

export interface ClientServices {
	readonly bodyMemory: BodyMemory;
	readonly bodyReads: BodyReads;
	readonly unreadAnswers: UnreadAnswers;
	readonly openStreams: OpenStreams;
	readonly silentConnections: SilentConnections;
}

export interface RequestTelemetry {
	readonly log: Log;
	readonly traces?: Traces | undefined;
	/** Counts refused requests, and gaps between events of streams. */
	readonly stats: Pick<RequestStats, "refuse" | "gap">;
	readonly refusals: Pick<Refusals, "record">;
}

export interface RequestContext {
	readonly connection: Connection;
	readonly endpoint: Endpoint;
	readonly uuid: string;
	readonly requestId: string;
	readonly hex: string;
	readonly startedMs: number;
	/** True with an `Idempotency-Key`: attempts then get consecutive ids, because the claim stores only the first. */
	readonly isRepeatable: boolean;
	/** True for a further attempt of a route, because an earlier attempt already counts against the key's rate limits. */
	readonly isAgain: boolean;
	/** True once the request is admitted: it will be settled and have a usage record. */
	isAdmitted: boolean;
	key: KeyEntry | undefined;
	modelName: string | undefined;
	/** The model of the request's first attempt; undefined until it is known. */
	model: Model | undefined;
	/** Undefined for requests that are not traced, which are most requests. */
	readonly trace: RequestTrace | undefined;
}

export function requestLogFields(context: RequestContext, key = context.key): LogFields {
	return { request: context.requestId, account: key?.accountId, key: key?.id };
}

/** An admitted request, which is settled exactly once. */
export interface ServedRequest<Input = unknown> {
	readonly context: RequestContext;
	readonly model: Model;
	/** The request after its check, reduced to fields that the model supports. */
	readonly input: Input;
	readonly admitted: Admitted;
	readonly createdS: number;
}

export function createCallContext<Input extends { readonly stream?: boolean }>(
	{ upstreams }: Pick<ServeDeps, "upstreams">,
	{ context, model, input, admitted }: ServedRequest<Input>,
	{ promptOf }: { promptOf?(input: Input): string },
	signal: AbortSignal,
): CallContext {
	const { accountId } = admitted.request.key;
	return {
		signal,
		routed:
			model.upstreams.length > 1 && promptOf !== undefined
				? upstreams.routed(promptOf(input), model, accountId, input.stream === true)
				: undefined,
		cacheSalt: model.isolatePrefixes === true ? upstreams.cacheSalt(accountId) : undefined,
		requestId: context.requestId,
		uuid: context.uuid,
		accountId,
		patient: context.connection.line !== undefined,
		trace: context.trace,
		request: input,
	};
}

export function createContext(
	endpoint: Endpoint,
	connection: Connection,
	clock: Clock,
	traces?: Traces,
	isRepeatable = false,
): RequestContext {
	const uuid = isRepeatable ? firstAttemptUuid() : (connection.line?.requestUuid ?? newUuid());
	const hex = uuidHex(uuid);
	const trace = traces?.begin(connection.request, endpoint);
	const startedMs = clock.monotonicMs();
	return {
		connection,
		endpoint,
		uuid,
		requestId: formatRequestId(hex),
		hex,
		startedMs,
		isRepeatable,
		isAgain: false,
		isAdmitted: false,
		key: undefined,
		modelName: undefined,
		model: undefined,
		trace,
	};
}

/** Context for sending the same request to the route's next model, with its own id, reservation and usage record. */
export function nextContext(context: RequestContext, clock: Clock): RequestContext {
	const known = context.isRepeatable ? nextAttemptUuid(context.uuid) : undefined;
	const isAgain = context.isAgain || context.isAdmitted;
	return { ...context, ...newRequestId(known), startedMs: clock.monotonicMs(), isAgain, isAdmitted: false };
}

/** An id whose next 255 ids are reserved for further attempts, so that the first id leads to all usage records. */
export const firstAttemptUuid = (): string => `${newUuid().slice(0, -2)}00`;

function nextAttemptUuid(uuid: string): string {
	const place = Number.parseInt(uuid.slice(-2), 16) + 1;
	assert(place < 256, "a request has fewer attempts than ids");
	return uuid.slice(0, -2) + place.toString(16).padStart(2, "0");
}
