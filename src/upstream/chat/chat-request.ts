import type { ChatRequestContext } from "../dialect.ts";

/** Fields that this side sets itself or that would widen what was reserved; a client's value never passes. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
	"model",
	"stream",
	"stream_options",
	"n",
	"max_tokens",
	"max_completion_tokens",
	"n_predict",
	"max_new_tokens",
	"num_predict",
]);

export interface ChatRequestRules {
	readonly limitField?: "max_tokens" | "max_completion_tokens";
	/** Options of a streamed request. */
	readonly streamOptions?: Readonly<Record<string, boolean>>;
	/** Fields that the server would refuse or misread. */
	readonly omit?: ReadonlySet<string>;
	/** False for servers that answer with one choice whatever is asked. */
	readonly choices?: boolean;
	/** Gives a field the form that the server wants. */
	readonly reshape?: (name: string, value: unknown) => unknown;
}

const INCLUDE_USAGE = { include_usage: true };

/** One stringify of a shallow object; messages that are at hand as text, the bulk of a long prompt, stay out of it. */
export function chatRequestText(
	fields: Readonly<Record<string, unknown>>,
	context: ChatRequestContext,
	rules: ChatRequestRules = {},
): string {
	const { rawMessages } = context;
	const body: Record<string, unknown> = { model: context.upstreamModel };
	for (const name in fields) {
		const value = fields[name];
		if (value === null || value === undefined || OWN_FIELDS.has(name) || rules.omit?.has(name) === true) continue;
		if (rawMessages !== undefined && name === "messages") continue;
		body[name] = rules.reshape === undefined ? value : rules.reshape(name, value);
	}
	if (context.n > 1 && rules.choices !== false) body.n = context.n;
	body[rules.limitField ?? "max_tokens"] = context.outputLimit;
	body.stream = context.stream;
	if (context.stream) body.stream_options = rules.streamOptions ?? INCLUDE_USAGE;
	const json = JSON.stringify(body);
	return rawMessages === undefined ? json : `${json.slice(0, -1)},"messages":${rawMessages}}`;
}
