import type { JsonObject } from "../wire-value.ts";
import { ABOUT_READERS, SOURCE_READERS } from "./answer-fields.ts";
import type { AnswerFields } from "./chat-answer.ts";

/** Follows what the events of a stream say of the answer beside its choices. */
export interface AboutReader {
	/** Whether the event changed `sources`. */
	note(event: JsonObject): boolean;
	/** Undefined for nothing; the same object as long as nothing changes. */
	about(): AnswerFields | undefined;
	sources(): AnswerFields | undefined;
}

export function createAboutReader(): AboutReader {
	let about: AnswerFields | undefined;
	let sources: AnswerFields | undefined;

	return {
		note(event) {
			for (const [name, read] of ABOUT_READERS) {
				const raw = event[name];
				if (raw === undefined || raw === null || raw === about?.[name]) continue;
				const value = read(raw);
				if (value !== undefined) about = { ...about, [name]: value };
			}
			let changed = false;
			for (const [name, read] of SOURCE_READERS) {
				const value = event[name] === undefined ? undefined : read(event[name]);
				if (value === undefined) continue;
				sources = { ...sources, [name]: value };
				changed = true;
			}
			return changed;
		},
		about: () => about,
		sources: () => sources,
	};
}

/** Of an answer that came whole. */
export function aboutOf(body: JsonObject): { about?: AnswerFields; sources?: AnswerFields } {
	const reader = createAboutReader();
	reader.note(body);
	const [about, sources] = [reader.about(), reader.sources()];
	return { ...(about === undefined ? {} : { about }), ...(sources === undefined ? {} : { sources }) };
}
