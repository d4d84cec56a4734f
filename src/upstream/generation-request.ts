import { isKnownTo, notCopied } from "../catalog/request-fields.ts";
import type { Prompt } from "./prompt.ts";
import type { Replica } from "./replicas/replica.ts";

/** One chat or text completion, as far as this service has a say in it. */
export interface GenerationRequest {
	readonly kind: "chat" | "completions";
	/** The client's optional fields, already filtered to what the deployment honours. */
	readonly fields: Readonly<Record<string, unknown>>;
	readonly prompt: Prompt;
	/** The reservation was made for this many output tokens a choice, so the server must be held to it. */
	readonly maxOutputTokens: number;
	/** Choices a prompt. */
	readonly n: number;
	/** The deployment's optional request fields. */
	readonly parameters: ReadonlySet<string>;
}

/**
 * The JSON text that goes to a replica. Model, stream, choices and output limit are set here, the limit in the one
 * field that the server reads. One stringify of a shallow object; a prompt that is at hand as text, the bulk of a long
 * request, stays out of it.
 */
export function generationText(replica: Replica, request: GenerationRequest, stream: boolean): string {
	const { dialect } = replica;
	const { kind, fields, n } = request;
	const omitted = notCopied(dialect.name, kind);
	const body: Record<string, unknown> = { model: replica.spec().model };
	for (const name in fields) {
		const value = fields[name];
		if (value !== null && value !== undefined && !omitted.has(name)) body[name] = dialect.shaped(name, value);
	}
	if (n > 1 && isKnownTo(dialect.name, "n")) body.n = n;
	// The older endpoint knows one name of the output limit in every family.
	body[kind === "chat" ? dialect.limitField(request.parameters) : "max_tokens"] = request.maxOutputTokens;
	body.stream = stream;
	if (stream) body.stream_options = dialect.streamOptions;
	return request.prompt.writtenInto(body, kind === "chat" ? "messages" : "prompt");
}
