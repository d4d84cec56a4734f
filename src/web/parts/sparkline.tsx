/** A line of a few values, 96 by 20; for rows of a table. The figures stand in the row. */
export function Sparkline({ values, color }: { values: readonly number[]; color: string }) {
	const top = Math.max(...values, 0);
	if (values.length < 2 || top === 0) return <span className="dim">–</span>;
	const points = values
		.map(
			(value, index) =>
				`${((index / (values.length - 1)) * 94 + 1).toFixed(1)},${(18 - (value / top) * 16).toFixed(1)}`,
		)
		.join(" ");
	return (
		<svg width="96" height="20" viewBox="0 0 96 20" aria-hidden="true">
			<polyline points={points} fill="none" stroke={color} strokeWidth="1.5" strokeLinejoin="round" />
		</svg>
	);
}
