import type { KeyView } from "../views.ts";
import { Amount, Moment } from "./text.tsx";

/** Spent and held against a key's cap, in its present period if it begins anew. */
export function CapBar({
	item,
	small,
}: {
	item: Pick<KeyView, "readsOnly" | "capNanoUsd" | "capPeriod" | "capSpentNanoUsd" | "capRenewsAtMs" | "heldNanoUsd">;
	small?: boolean;
}) {
	const { capNanoUsd: cap, capPeriod: period, capSpentNanoUsd: spent, heldNanoUsd: held } = item;
	if (item.readsOnly) return <span className="dim">Only reads</span>;
	if (cap === null) return <span className="dim">No cap</span>;
	const share = (amount: number) => `${cap === 0 ? 100 : Math.min(100, (amount / cap) * 100)}%`;
	const percent = cap === 0 ? 100 : Math.round(((spent + held) / cap) * 100);
	return (
		<div className="cap">
			{/* biome-ignore lint/a11y/useSemanticElements: a meter element cannot show two parts */}
			<div
				className="bar"
				role="meter"
				aria-label="Spent and held against the cap"
				aria-valuemin={0}
				aria-valuemax={100}
				aria-valuenow={Math.min(100, percent)}
				aria-valuetext={`${percent}% of the cap`}
			>
				<span className="bar-spent" style={{ width: share(spent) }} />
				<span className="bar-held" style={{ width: share(held) }} />
			</div>
			<div className="small dim">
				{small ? null : (
					<>
						<Amount nanoUsd={spent} /> spent, <Amount nanoUsd={held} /> held{" "}
					</>
				)}
				of <Amount nanoUsd={cap} />
				{period === "lifetime" ? null : ` a ${period}`}
				{small || item.capRenewsAtMs === null ? null : (
					<>
						; begins anew <Moment atMs={item.capRenewsAtMs} />
					</>
				)}
			</div>
		</div>
	);
}
