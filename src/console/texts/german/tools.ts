export const tools = {
	Tool: "Werkzeug",
	Install: "Installieren",
	"Copy {path}": "{path} kopieren",
	"The key, for this shell": "Der Schlüssel, für diese Shell",
	Ask: "Fragen",
	"Run it": "Ausführen",
	"The same in TypeScript. Node 20, or Bun.": "Ebenso in TypeScript. Node 20 oder Bun.",
	"Java 17 and Maven.": "Java 17 und Maven.",
	"Cursor's own servers ask in your place: the base address must be one that the internet reaches.":
		"Die Server von Cursor fragen an Ihrer Stelle: Die Basisadresse muss aus dem Internet erreichbar sein.",
	"Cursor Settings, Models, API Keys: switch “OpenAI API Key” on and enter":
		"Cursor Settings, Models, API Keys: „OpenAI API Key“ einschalten und eingeben",
	"Below it: switch “Override OpenAI Base URL” on and enter":
		"Darunter: „Override OpenAI Base URL“ einschalten und eingeben",
	"Cursor Settings, Models: “Add custom model”, and enter": "Cursor Settings, Models: „Add custom model“ und eingeben",
	"Choose that model in the chat.": "Im Chat dieses Modell wählen.",
	"The extension of VS Code and JetBrains, or its command line.":
		"Die Erweiterung für VS Code und JetBrains oder ihre Befehlszeile.",
	"Choose the model in the chat of the editor, or ask in a shell: cn":
		"Im Chat des Editors das Modell wählen oder in einer Shell fragen: cn",
	"Python 3.11 or 3.12. A running one: Admin Panel, Settings, Connections, OpenAI API, with the same two values.":
		"Python 3.11 oder 3.12. Läuft es schon: Admin Panel, Settings, Connections, OpenAI API, mit denselben zwei Werten.",
	"Start it, then open http://localhost:8080; each chat model of the service is in its list":
		"Starten, dann http://localhost:8080 öffnen; jedes Chat-Modell des Dienstes steht in der Liste",
} as const;
