/** What the demo model says, and how it counts. Deterministic: the same request gets the same answer. */

/** Up to eight letters or digits with the space before them, a mark, or blank space: every token has a byte or more. */
const TOKEN = / ?[\p{L}\p{M}\p{N}]{1,8}| ?[^\s\p{L}\p{M}\p{N}]|\s/gu;
/** The role and the separators of a message. */
const MESSAGE_TOKENS = 3;
const QUOTE_CHARS_MAX = 120;

export interface DemoMessage {
	readonly role: string;
	readonly text: string;
}

/** The pieces that a text is streamed in; their count is its number of tokens. Joined they are the text again. */
export function demoTokens(text: string): string[] {
	return text.match(TOKEN) ?? [];
}

export function demoPromptTokens(messages: readonly DemoMessage[]): number {
	return messages.reduce((sum, { text }) => sum + MESSAGE_TOKENS + demoTokens(text).length, 0);
}

export function demoAnswer(messages: readonly DemoMessage[], promptTokens: number): string {
	const asked = messages.findLast(({ role }) => role === "user")?.text.trim() ?? "";
	return [
		"Hello! This is the demo model that is built into Tollgate: a short program, not a language model.",
		`It read ${promptTokens} prompt tokens${asked === "" ? "" : `, and your last message was "${shorten(asked)}"`}.`,
		"The rest is as with a real model: your key was checked, credit was reserved before this answer began,",
		"and it is settled from the token counts below.",
		"To serve a real model, start vLLM, SGLang, llama.cpp, Ollama or LM Studio on its usual port and start Tollgate again,",
		"or describe your models in tollgate.yaml; the README says how.",
	].join(" ");
}

/** Ends the text before the first of `stops`; `cut` says whether there was one. */
export function cutAtStop(text: string, stops: readonly string[]): string {
	const ends = stops.filter((stop) => stop !== "").map((stop) => text.indexOf(stop));
	const first = Math.min(...ends.filter((at) => at >= 0), text.length);
	return text.slice(0, first);
}

function shorten(text: string): string {
	const line = text.replace(/\s+/g, " ");
	const characters = [...line];
	return characters.length <= QUOTE_CHARS_MAX ? line : `${characters.slice(0, QUOTE_CHARS_MAX).join("")}…`;
}
