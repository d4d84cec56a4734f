import type { Admission, Admitted } from "../admission/admission.ts";
import type { PromptMeasure } from "../admission/prompt-bound.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Model } from "../catalog/model.ts";
import type { ServiceLimits } from "../catalog/service-limits.ts";
import type { Refusals } from "../ops/refusals.ts";
import type { Upstreams } from "../upstream/upstreams.ts";
import type { ChatRequest } from "./chat/chat-request.ts";
import type { OpenStreams } from "./open-streams.ts";

/** What the server knows of the client's connection beside the request. */
export interface Connection {
	readonly request: Request;
	/** The client's address, as far as it can be trusted. */
	readonly address: string;
	/**
	 * Seconds without traffic after which the connection is cut, from now on; 0 for never. It sticks to the connection,
	 * so whoever raises it sets it back.
	 */
	setIdleTimeout(seconds: number): void;
}

/** What the server sets by itself between requests. */
export const IDLE_TIMEOUT_S = 10;
/** While a stream is open: comments keep an idle one alive, and a reader that takes nothing is thrown out. */
export const STREAM_TIMEOUT_S = 60;

export interface ExchangeDeps {
	readonly admission: Admission;
	readonly upstreams: Upstreams;
	readonly openStreams: OpenStreams;
	readonly clock: Clock;
	readonly log: Log;
	/** Counts what was refused before it was admitted. */
	readonly stats: { refuse(code: string): void };
	/** For the owner of the key to read. */
	readonly refusals: Pick<Refusals, "record">;
	limits(): ServiceLimits;
}

/** One admitted chat request on its way. */
export interface Exchange {
	readonly connection: Connection;
	readonly requestId: string;
	/** Id of the answer. */
	readonly answerId: string;
	readonly startedMs: number;
	readonly createdS: number;
	readonly model: Model;
	readonly ask: ChatRequest;
	readonly measure: PromptMeasure;
	readonly admitted: Admitted;
}
