import type { DialectName, ModelKind } from "./model.ts";

type Reasons = Readonly<Record<string, string>>;

/** What no deployment can be given, whatever its servers know: the gateway answers for these itself. */
const OWN: Partial<Record<ModelKind, Reasons>> = {
	chat: {
		best_of: "what is generated and not delivered cannot be reserved for",
		n_predict: "the output limit is `max_tokens` here",
		max_new_tokens: "the output limit is `max_tokens` here",
		num_predict: "the output limit is `max_tokens` here",
	},
	image: { partial_images: "images are delivered whole" },
};

const ONE_CHOICE: Reasons = {
	n: "its servers answer with one choice, whatever is asked",
	logit_bias: "its servers ignore it or have another",
};

/** What a family's servers ignore, refuse or misread in a chat or a completion, so that it is never sent to them. */
const NOT_SENT: Partial<Record<DialectName, Reasons>> = { ollama: ONE_CHOICE, tgi: ONE_CHOICE };

/** What a rerank request asks beside its documents; the gateway sees to these two, the rest is not sent to TEI. */
const RANKING: ReadonlySet<string> = new Set(["top_n", "return_documents"]);

/**
 * Why a deployment cannot honour a request field; undefined if it can, as far as is known. A field that is listed all
 * the same would be promised in the list of models and then dropped in silence.
 */
export function whyNotHonoured(dialect: DialectName, kind: ModelKind, parameter: string): string | undefined {
	const own = OWN[kind];
	if (own !== undefined && Object.hasOwn(own, parameter)) return own[parameter];
	const notSent = kind === "chat" ? NOT_SENT[dialect] : undefined;
	if (notSent !== undefined && Object.hasOwn(notSent, parameter)) return notSent[parameter];
	return kind === "rerank" && dialect === "tei" && !RANKING.has(parameter)
		? "its servers take no such options"
		: undefined;
}
