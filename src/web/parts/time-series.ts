import type { UsageSeries } from "../api.ts";
import { t } from "../texts.tsx";

/** Colours that people with common colour blindness can tell apart (after Okabe and Ito), in both themes. */
const COLORS = ["#0072b2", "#d98200", "#009e73", "#b8578d", "#56b4e9", "#c04f15", "#8c8f00", "#7a6ac8"] as const;
export const OTHER_GROUP = "#8a939b";
const STATUS_COLORS: Readonly<Record<string, string>> = { ok: "#009e73", failed: "#c04f15", left: "#d98200" };
/** Most groups with their own series; all other groups form one series. */
export const SERIES_MAX = COLORS.length;

/** Returns each group's colour, equal in chart and table. Statuses have fixed colours, others get one by position. */
export function seriesColors(groups: readonly { readonly id: string }[] = []): (id: string) => string {
	const places = new Map(groups.map(({ id }, place) => [id, place]));
	return (id) => STATUS_COLORS[id] ?? COLORS[places.get(id) ?? SERIES_MAX] ?? OTHER_GROUP;
}

interface Labelled {
	readonly id: string;
	readonly label: string;
}

/** Values over time by group, highest groups first. */
export interface TimeSeries extends Pick<UsageSeries, "bucket" | "starts" | "toMs"> {
	readonly groups: readonly Labelled[];
	readonly points: readonly { readonly atMs: number; readonly group: string; readonly value: number }[];
}

/** Name of a group; usage without a project has an empty id. */
export const groupLabel = ({ id, label }: Labelled): string => (id === "" ? t("No project") : label);
