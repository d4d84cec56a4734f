/** Answers of a model server as literal bytes: the JSON body, or the events of a stream. */
import { type Reply, reply } from "./upstream-reply.ts";

type Json = Record<string, unknown>;

/** Returns server-sent events with these bodies, followed by `[DONE]`. */
function eventsText(bodies: readonly Json[], endMarker = true): string {
	const events = bodies.map((body) => `data: ${JSON.stringify(body)}\n\n`).join("");
	return endMarker ? `${events}data: [DONE]\n\n` : events;
}

export function streamReply(bodies: readonly Json[], endMarker = true): Reply {
	return reply().raw(eventsText(bodies, endMarker));
}

export function wholeReply(body: Json): Reply {
	return reply().raw(JSON.stringify(body), "application/json");
}

export function chatEvent(delta: Json, finish: unknown = null, more: Json = {}): Json {
	return { choices: [{ index: 0, delta, finish_reason: finish }], ...more };
}

export function chatAnswer(message: Json, finish: unknown = "stop", more: Json = {}): Json {
	return { choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: finish }], ...more };
}

export function usageEvent(prompt: number, completion: number): Json {
	return { choices: [], usage: { prompt_tokens: prompt, completion_tokens: completion } };
}

/** Parses the JSON events of a stream's text, without comments and the end marker. */
export function jsonEvents(text: string): Json[] {
	return text
		.split("\n\n")
		.filter((event) => event.startsWith("data: {"))
		.map((event) => JSON.parse(event.slice("data: ".length)) as Json);
}

/** A choice's message as SDKs assemble it: texts joined, calls by their index, other fields by their last value. */
export function messageOf(events: readonly Json[], choice = 0): Json {
	const message: Json = { role: "assistant", content: null, refusal: null };
	const calls: { function: { name: string; arguments: string } }[] = [];
	for (const { index, delta } of events.flatMap((event) => (event.choices ?? []) as { index: number; delta: Json }[])) {
		if (index !== choice) continue;
		for (const [name, value] of Object.entries(delta)) {
			const before = message[name];
			if (name === "role" || name === "tool_calls") continue;
			message[name] = typeof value === "string" && typeof before === "string" ? before + value : value;
		}
		for (const { index: at, ...call } of (delta.tool_calls ?? []) as (Json & { index: number })[]) {
			const added = (call.function ?? {}) as { name?: string; arguments?: string };
			const known = calls[at] ?? { ...call, function: { name: "", arguments: "" } };
			known.function.name += added.name ?? "";
			known.function.arguments += added.arguments ?? "";
			calls[at] = known;
		}
	}
	return { ...message, content: message.content || null, ...(calls.length === 0 ? {} : { tool_calls: calls }) };
}
