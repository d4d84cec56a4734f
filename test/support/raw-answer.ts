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
