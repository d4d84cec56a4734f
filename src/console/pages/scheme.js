// Runs before the first paint, so that a page in dark never flashes white. A file of its own: inline scripts are not allowed.
(() => {
	let choice = "auto";
	try {
		choice = localStorage.getItem("tollgate-scheme") || "auto";
	} catch {
		// Storage is switched off: the system decides.
	}
	const dark = choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
	document.documentElement.setAttribute("data-mantine-color-scheme", dark ? "dark" : "light");
})();
