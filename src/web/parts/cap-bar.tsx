import { Box, Progress } from "@mantine/core";
import type { KeyView } from "../api.ts";
import { rich, t } from "../texts.tsx";
import { Amount, Timestamp } from "./text.tsx";

const OF_CAP = {
	lifetime: "of {cap}",
	day: "of {cap} per day",
	week: "of {cap} per week",
	month: "of {cap} per month",
} as const;

type Capped = Pick<KeyView, "capNanoUsd" | "capPeriod" | "capSpentNanoUsd" | "capRenewsAtMs" | "heldNanoUsd">;

/** Bar that shows spent and held amounts in proportion to a cap, for the cap's current period. */
export function CapBar({ item, small }: { item: Capped & { readonly readsOnly?: boolean }; small?: boolean }) {
	const { capNanoUsd: cap, capPeriod: period, capSpentNanoUsd: spent, heldNanoUsd: held } = item;
	if (item.readsOnly) return <span className="dim">{t("Read-only")}</span>;
	if (cap === null) return <span className="dim">{t("No cap")}</span>;
	const share = (amount: number) => (cap === 0 ? 100 : Math.min(100, (amount / cap) * 100));
	const percent = cap === 0 ? 100 : Math.round(((spent + held) / cap) * 100);
	return (
		<Box miw={90}>
			<Progress.Root
				role="meter"
				aria-label={t("Spent and held against the cap")}
				aria-valuemin={0}
				aria-valuemax={100}
				aria-valuenow={Math.min(100, percent)}
				aria-valuetext={t("{percent}% of the cap", { percent })}
			>
				<Progress.Section withAria={false} value={share(spent)} />
				<Progress.Section withAria={false} value={share(held)} color="yellow" striped />
			</Progress.Root>
			<div className="small dim">
				{!small && (
					<>
						{rich("{spent} spent, {held} held", {
							spent: <Amount nanoUsd={spent} />,
							held: <Amount nanoUsd={held} />,
						})}{" "}
					</>
				)}
				{rich(OF_CAP[period], { cap: <Amount nanoUsd={cap} /> })}
				{!small &&
					item.capRenewsAtMs !== null &&
					rich("; resets {capRenews}", { capRenews: <Timestamp atMs={item.capRenewsAtMs} /> })}
			</div>
		</Box>
	);
}
