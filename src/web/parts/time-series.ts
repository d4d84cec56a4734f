import { t } from "../texts.tsx";
import type { UsageSeries } from "../views.ts";

/** Colours that remain distinct with common colour blindness (after Okabe and Ito), on light and dark. */
const COLORS = ["#0072b2", "#d98200", "#009e73", "#b8578d", "#56b4e9", "#c04f15", "#8c8f00", "#7a6ac8"] as const;
export const OTHER = "#8a939b";
const STATUS_COLORS: Readonly<Record<string, string>> = { ok: "#009e73", failed: "#c04f15", left: "#d98200" };
/** Groups that have a series of their own; the rest is one series. */
export const SERIES_MAX = COLORS.length;

/** A group's colour, the same in chart and table: by position, except for statuses. */
export function seriesColors(groups: readonly { readonly id: string }[] = []): (id: string) => string {
	const places = new Map(groups.map(({ id }, place) => [id, place]));
	return (id) => STATUS_COLORS[id] ?? COLORS[places.get(id) ?? SERIES_MAX] ?? OTHER;
}

interface Labelled {
	readonly id: string;
	readonly label: string;
}

/** Values over time by group. The highest groups come first. */
export interface TimeSeries extends Pick<UsageSeries, "bucket" | "starts" | "toMs"> {
	readonly groups: readonly Labelled[];
	readonly points: readonly { readonly atMs: number; readonly group: string; readonly value: number }[];
}

/** Name of a group; usage without a project has a group without a name. */
export const groupLabel = ({ id, label }: Labelled): string => (id === "" ? t("No project") : label);
