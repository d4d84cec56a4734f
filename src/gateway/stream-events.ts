import type { Fault } from "../base/fault.ts";
import type { ChatChunk } from "../upstream/chat/chat-answer.ts";
import type { UsageRecord } from "./bill/usage-record.ts";
import { errorBody } from "./error-body.ts";

/** Writes one chat answer as server-sent events: `data: <json>`, comments and `data: [DONE]`, nothing else. */
export interface ChatEvents<Chunk = ChatChunk> {
	/** The text of these chunks; empty if the only one is a finish that waits for its usage. */
	chunks(chunks: readonly Chunk[]): string;
	/** The authoritative usage and the terminator. */
	end(usage: UsageRecord): string;
	/** An error, then the usage, then the terminator: readers that go on after an error still see what was charged. */
	fail(fault: Fault, usage: UsageRecord): string;
}

export const KEEP_ALIVE_COMMENT = ": \n\n";
const DONE = "data: [DONE]\n\n";

/**
 * A client that asked for usage gets it as an event of its own with `choices: []`, and `usage: null` before. For one
 * that did not, it rides on the finish: many such clients read `choices[0]` of every event.
 */
export function createChatEvents<Chunk extends { choices: readonly { finish_reason: string | null }[] } = ChatChunk>(
	head: { id: string; createdS: number; model: string; object?: string },
	includeUsage: boolean,
): ChatEvents<Chunk> {
	const object = head.object ?? "chat.completion.chunk";
	const prefix = `data: {"id":${JSON.stringify(head.id)},"object":"${object}","created":${head.createdS},"model":${JSON.stringify(head.model)},"choices":`;
	const suffix = includeUsage ? ',"usage":null}\n\n' : "}\n\n";
	/** The last finish, held back until the usage is known. */
	let held: string | undefined;

	const isFinish = (chunk: Chunk) => chunk.choices.some((choice) => choice.finish_reason !== null);
	const event = (choices: string) => prefix + choices + suffix;
	const usageEvent = (usage: UsageRecord, choices = "[]") =>
		`${prefix}${choices},"usage":${JSON.stringify(usage)}}\n\n`;

	function release(): string {
		const text = held === undefined ? "" : event(held);
		held = undefined;
		return text;
	}

	return {
		chunks(chunks) {
			let text = "";
			for (const chunk of chunks) {
				const choices = JSON.stringify(chunk.choices);
				if (includeUsage) text += event(choices);
				else {
					text += release();
					if (isFinish(chunk)) held = choices;
					else text += event(choices);
				}
			}
			return text;
		},
		end(usage) {
			const choices = held;
			held = undefined;
			return usageEvent(usage, choices) + DONE;
		},
		fail: (fault, usage) => `${release()}data: ${JSON.stringify(errorBody(fault))}\n\n${usageEvent(usage)}${DONE}`,
	};
}
