import type { AssembledChoice, AssembledMessage } from "./recording.ts";

/** An event as a client parses it: any fields, of any type. */
export type AnyEvent = Readonly<Record<string, unknown>>;

interface Gathered {
	text: string;
	reasoning: string;
	refusal: string;
	tools: { id: string; name: string; args: string }[];
	finish: string | null;
	logprobs: string;
	cites: string[];
	signed: unknown[];
	spoken: string;
}

/** Assembles a stream's events into a message, as applications do with an SDK. */
export function assemble(events: readonly AnyEvent[]): AssembledMessage {
	const choices: Gathered[] = [];
	let usage: AssembledMessage["usage"] = null;
	let sources: string[] = [];
	for (const event of events) {
		const count = event.usage as
			| { prompt_tokens: number; completion_tokens: number; basis?: string }
			| null
			| undefined;
		if (count && count.basis !== "estimated") usage = [count.prompt_tokens, count.completion_tokens];
		if (Array.isArray(event.citations)) sources = event.citations as string[];
		for (const choice of (event.choices ?? []) as AnyEvent[]) gather(choices, choice);
	}
	return { choices: choices.map(saidOf), usage, ...(sources.length === 0 ? {} : { sources }) };
}

function gather(choices: Gathered[], choice: AnyEvent): void {
	const index = (choice.index as number | undefined) ?? 0;
	const into = choices[index] ?? {
		text: "",
		reasoning: "",
		refusal: "",
		tools: [],
		finish: null,
		logprobs: "",
		cites: [],
		signed: [],
		spoken: "",
	};
	choices[index] = into;
	const delta = (choice.delta ?? { content: choice.text }) as AnyEvent;
	if (delta.content) into.text += typeof delta.content === "string" ? delta.content : "[parts]";
	into.reasoning += delta.reasoning_content ?? delta.reasoning ?? "";
	into.refusal += delta.refusal ?? "";
	into.spoken += (delta.audio as AnyEvent | undefined)?.transcript ?? "";
	for (const call of (delta.tool_calls ?? []) as AnyEvent[]) gatherCall(into, call);
	if (choice.finish_reason) into.finish = choice.finish_reason as string;
	const logprobs = choice.logprobs as
		| { content?: AnyEvent[]; refusal?: AnyEvent[]; tokens?: string[] }
		| null
		| undefined;
	for (const { token } of [...(logprobs?.content ?? []), ...(logprobs?.refusal ?? [])]) into.logprobs += token;
	into.logprobs += (logprobs?.tokens ?? []).join("");
	for (const { url_citation: cited } of (delta.annotations ?? []) as AnyEvent[])
		if (cited) into.cites.push((cited as { url: string }).url);
	for (const name of ["reasoning_details", "thinking_blocks", "extra_content"])
		if (delta[name]) into.signed.push(delta[name]);
}

function gatherCall(into: Gathered, call: AnyEvent): void {
	const at = (call.index as number | undefined) ?? 0;
	const { name, arguments: args } = (call.function ?? {}) as { name?: string; arguments?: unknown };
	const known = into.tools[at] ?? { id: "", name: "", args: "" };
	into.tools[at] = known;
	if (!known.id) known.id = (call.id as string | undefined) ?? "";
	known.name += name ?? "";
	known.args += typeof args === "string" ? args : args ? JSON.stringify(args) : "";
	for (const signature of ["extra_content", "thought_signature"])
		if (call[signature]) into.signed.push(call[signature]);
}

/** Replaces generated ids by a mark, so that only their presence is compared. */
function saidOf({
	text,
	finish,
	reasoning,
	refusal,
	tools,
	logprobs,
	cites,
	signed,
	spoken,
}: Gathered): AssembledChoice {
	const shown = tools.map(({ id, name, args }) =>
		`${/^call_[0-9a-f]{32}$/.test(id) ? "made" : id} ${name}(${args})`.trim(),
	);
	return {
		text,
		finish,
		...(reasoning === "" ? {} : { reasoning }),
		...(refusal === "" ? {} : { refusal }),
		...(tools.length === 0 ? {} : { tools: shown }),
		...(logprobs === "" ? {} : { logprobs }),
		...(cites.length === 0 ? {} : { cites }),
		...(signed.length === 0 ? {} : { signed: JSON.stringify(signed) }),
		...(spoken === "" ? {} : { spoken }),
	};
}
