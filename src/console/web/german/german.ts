import { credit } from "./credit.ts";
import { door } from "./door.ts";
import { frame } from "./frame.ts";
import { keys } from "./keys.ts";
import { parts } from "./parts.ts";
import { requests } from "./requests.ts";
import { settings } from "./settings.ts";
import { usage } from "./usage.ts";

/** The German of each text, by its English. Rooms are where a text is first used; no text stands in two. */
export const german = {
	...credit,
	...door,
	...frame,
	...keys,
	...parts,
	...requests,
	...settings,
	...usage,
} as const;

export type German = typeof german;
