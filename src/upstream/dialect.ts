import type { DialectName } from "../catalog/model.ts";
import type { UpstreamFailure } from "./reply.ts";
import type { UsageStyle } from "./usage.ts";

/** The parts of a chat request that are ours to say, whatever the client sent. */
export interface ChatRequestContext {
	/** The name that the server knows the model by. */
	readonly upstreamModel: string;
	readonly stream: boolean;
	/** The reservation was made for this many output tokens a choice, so the server must be held to it. */
	readonly outputLimit: number;
	readonly n: number;
	/** The deployment's optional request fields. */
	readonly parameters: ReadonlySet<string>;
	/** The JSON text of the messages, if it is at hand: then nothing reads them again. */
	readonly rawMessages?: string | undefined;
}

/** What is particular to one family of model servers. Stateless; one constant per family. */
export interface Dialect {
	readonly name: DialectName;
	readonly usageStyle: UsageStyle;
	/** False where an unstreamed answer's usage leaves out all choices but the first. */
	readonly unaryUsageCoversChoices: boolean;
	/**
	 * The JSON text of a chat request. `fields` are the client's, already filtered to what the deployment honours;
	 * model, stream, choices and output limit are set from `context`, the limit in the one field the server reads.
	 */
	chatRequest(fields: Readonly<Record<string, unknown>>, context: ChatRequestContext): string;
	/** The failure that an answer with another status than 200 stands for. */
	failureOfStatus(status: number, bodyText: string): UpstreamFailure;
	/** The failure that an `error` inside an answer with status 200 stands for, be it an event or the whole body. */
	failureOfError(error: unknown): UpstreamFailure;
	/** An address that tells whether the server lives and costs no generation. `baseUrl` is the replica's. */
	healthUrl(baseUrl: string): string;
}
