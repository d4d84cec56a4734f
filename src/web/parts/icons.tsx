/** Decorative line icons of 16 px, as SVG paths. */
const PATHS = {
	overview: "M2.5 8.5 8 3l5.5 5.5M4 7.5V13h3V9.5h2V13h3V7.5",
	keys: "M2.5 11a2.5 2.5 0 1 0 5 0 2.5 2.5 0 1 0-5 0M7 9.2 13 3M10.6 5.4l1.9 1.9",
	projects: "M2 4.5V13h12V5.5H8L6.5 3.5H2zM2 8h12",
	credit: "M2 4h12v8.5h-12zM2 7h12M4.5 10h3",
	usage: "M2.5 13.5h11M4 11V8M7 11V4M10 11V6.5M13 11V2.5",
	requests: "M2.5 4h11M2.5 8h11M2.5 12h7",
	models: "M8 2 13.5 5v6L8 14 2.5 11V5zM2.5 5 8 8l5.5-3M8 8v6",
	batches: "M4.5 5.5v-3h9v9h-3M2.5 5.5h8v8h-8zM4.5 8h4M4.5 10.5h4",
	playground: "M2.5 3h11v8h-6L4.5 13.5V11h-2zM5.5 6h5M5.5 8.5h3",
	docs: "M3.5 2h6l3 3v9h-9zM9.5 2v3h3M5.5 8h5M5.5 11h5",
	status: "M1.5 8.5h3l2-5 3 9 2-4h3",
	settings:
		"M2.5 4.5h6M12 4.5h1.5M2.5 11.5H4M7.5 11.5h6M8.6 4.5a1.6 1.6 0 1 0 3.2 0 1.6 1.6 0 1 0-3.2 0M4.2 11.5a1.6 1.6 0 1 0 3.2 0 1.6 1.6 0 1 0-3.2 0",
	instances: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM4.8 5h.1M4.8 11h.1",
	copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
	check: "m3 8.5 3.2 3.2L13 4.8",
	menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
	plus: "M8 3v10M3 8h10",
	download: "M8 2.5v7.5M4.8 7.2 8 10.4l3.2-3.2M2.5 13.5h11",
	warning: "M8 2 14.5 13.5h-13zM8 6.5v3.2M8 11.3v.7",
	dark: "M13 9.6A5.6 5.6 0 0 1 6.4 3 5.6 5.6 0 1 0 13 9.6z",
	light:
		"M5.2 8a2.8 2.8 0 1 0 5.6 0 2.8 2.8 0 1 0-5.6 0M8 1.5v1.6M8 12.9v1.6M1.5 8h1.6M12.9 8h1.6M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M3.4 12.6l1.1-1.1M11.5 4.5l1.1-1.1",
	auto: "M2.5 8a5.5 5.5 0 1 0 11 0 5.5 5.5 0 1 0-11 0M8 2.5v11M10.5 4v8M12 5.5v5",
	user: "M5.5 5.5a2.5 2.5 0 1 0 5 0 2.5 2.5 0 1 0-5 0M3 13.5c.5-2.8 2.5-4 5-4s4.5 1.2 5 4",
	chevron: "m4 6 4 4 4-4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
	return (
		<svg
			className="icon"
			width={size}
			height={size}
			viewBox="0 0 16 16"
			fill="none"
			stroke="currentColor"
			strokeWidth="1.3"
			strokeLinecap="round"
			strokeLinejoin="round"
			aria-hidden="true"
			focusable="false"
		>
			<path d={PATHS[name]} />
		</svg>
	);
}
