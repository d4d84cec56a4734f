import type { JsonObject } from "../wire-value.ts";
import { ABOUT_READERS, SOURCE_READERS } from "./answer-fields.ts";
import type { AnswerFields } from "./chat-answer.ts";

/** What the events of a stream have said so far of the answer beside its choices. */
export interface AboutSoFar {
	/** Undefined for nothing; the same object as long as nothing changes. */
	about: AnswerFields | undefined;
	sources: AnswerFields | undefined;
}

export function newAboutSoFar(): AboutSoFar {
	return { about: undefined, sources: undefined };
}

/** Takes in one event, or a whole answer; gives whether it changed `sources`. */
export function noteAbout(soFar: AboutSoFar, event: JsonObject): boolean {
	for (const [name, read] of ABOUT_READERS) {
		const raw = event[name];
		if (raw === undefined || raw === null || raw === soFar.about?.[name]) continue;
		const value = read(raw);
		if (value !== undefined) soFar.about = { ...soFar.about, [name]: value };
	}
	let changed = false;
	for (const [name, read] of SOURCE_READERS) {
		const value = event[name] === undefined ? undefined : read(event[name]);
		if (value === undefined) continue;
		soFar.sources = { ...soFar.sources, [name]: value };
		changed = true;
	}
	return changed;
}

const NOTHING_SAID = {};

/** Of an answer that came whole. */
export function aboutOf(body: JsonObject): { about?: AnswerFields; sources?: AnswerFields } {
	const soFar = newAboutSoFar();
	noteAbout(soFar, body);
	const { about, sources } = soFar;
	if (about === undefined && sources === undefined) return NOTHING_SAID;
	return { ...(about === undefined ? {} : { about }), ...(sources === undefined ? {} : { sources }) };
}
