import { audit } from "./audit.ts";
import { batches } from "./batches.ts";
import { credit } from "./credit.ts";
import { docs } from "./docs.ts";
import { door } from "./door.ts";
import { frame } from "./frame.ts";
import { keys } from "./keys.ts";
import { models } from "./models.ts";
import { operator } from "./operator.ts";
import { parts } from "./parts.ts";
import { playground } from "./playground.ts";
import { projects } from "./projects.ts";
import { requests } from "./requests.ts";
import { settings } from "./settings.ts";
import { tools } from "./tools.ts";
import { usage } from "./usage.ts";

/** The German of each text, by its English. Rooms are where a text is first used; no text stands in two. */
export const german = {
	...audit,
	...batches,
	...credit,
	...docs,
	...door,
	...frame,
	...keys,
	...models,
	...operator,
	...parts,
	...playground,
	...projects,
	...requests,
	...settings,
	...tools,
	...usage,
} as const;

export type German = typeof german;
