import type { JsonObject } from "../wire-value.ts";
import { ABOUT_READERS, SOURCE_READERS } from "./answer-fields.ts";
import type { AnswerFields } from "./chat-answer.ts";

/** The fields next to the choices that a stream's events had so far. */
export interface AboutSoFar {
	/** Undefined if there were none; the same object until a field changes. */
	about: AnswerFields | undefined;
	sources: AnswerFields | undefined;
}

export function newAboutSoFar(): AboutSoFar {
	return { about: undefined, sources: undefined };
}

/** Reads the fields of one event or of a whole answer. Returns whether `sources` changed. */
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

/** Returns the fields of an unstreamed answer. */
export function aboutOf(body: JsonObject): { about?: AnswerFields; sources?: AnswerFields } {
	const soFar = newAboutSoFar();
	noteAbout(soFar, body);
	const { about, sources } = soFar;
	if (about === undefined && sources === undefined) return NOTHING_SAID;
	return { ...(about === undefined ? {} : { about }), ...(sources === undefined ? {} : { sources }) };
}
