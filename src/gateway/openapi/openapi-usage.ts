const DAY = { type: "string", format: "date", description: "A day in UTC." };
/** Query parameters of `GET /v1/usage`. */
export const USAGE_QUERY: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
	["from", { ...DAY, description: "The first day, in UTC; without it 30 days." }],
	["to", { ...DAY, description: "The last day, in UTC; without it today. At most 400 days in all." }],
	[
		"group_by",
		{
			type: "string",
			description: "Of `day`, `model`, `project`, `key`, by comma; without it `day,model`; empty: one sum.",
		},
	],
	["model", { type: "string", maxLength: 200 }],
	["key", { type: "string", maxLength: 64, description: "The ID of a key." }],
	[
		"project",
		{
			type: "string",
			maxLength: 64,
			description: "The ID of a project, as of when it was used; `none`: in no project.",
		},
	],
	["limit", { type: "integer", minimum: 1, maximum: 10_000, default: 1_000 }],
	["after", { type: "string", maxLength: 1_000, description: "`next` of the page before." }],
];
