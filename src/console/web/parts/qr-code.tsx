import { qrModules } from "../qr.ts";

/** Black on white in both schemes, since readers want it so. Nothing where the text is too long: it stands beside. */
export function QrCode({ text, label }: { text: string; label: string }) {
	const rows = qrModules(text);
	if (!rows) return null;
	const path = rows.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ""))).join("");
	return (
		<svg
			className="qr"
			viewBox={`-2 -2 ${rows.length + 4} ${rows.length + 4}`}
			role="img"
			aria-label={label}
			shapeRendering="crispEdges"
		>
			<path d={path} fill="#000" />
		</svg>
	);
}
