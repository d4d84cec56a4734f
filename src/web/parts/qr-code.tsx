import { encode } from "uqr";

/** Empty modules around it, without which readers do not find it. */
const BORDER = 2;
/** The largest code holds 2,953 bytes; one as large as this is already hard to read from a screen. */
const BYTES_MAX = 1_000;

/** Black on white in both schemes, since readers want it so. Nothing where the text is too long: it stands beside. */
export function QrCode({ text, label }: { text: string; label: string }) {
	if (new TextEncoder().encode(text).length > BYTES_MAX) return null;
	const { data, size } = encode(text, { border: BORDER });
	const path = data.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ""))).join("");
	return (
		<svg className="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shapeRendering="crispEdges">
			<path d={path} fill="#000" />
		</svg>
	);
}
