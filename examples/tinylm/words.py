"""The words of the stories: names, kinds, places, things, and what happens to each of them."""

from collections import namedtuple

GIRLS = "Lily Mia Anna Sue Rose Emma Zoe Nora Ella Ruby Kate Amy".split()
BOYS = "Tom Ben Max Sam Jack Leo Finn Tim Oscar Hugo Dan Will".split()
SHE_PETS = "Dot Momo Fluffy Daisy Coco".split()
HE_PETS = "Pip Bruno Rusty Toby Spot".split()
PET_KINDS = "fox rabbit bear mouse squirrel duck hedgehog frog".split()
TRAITS = "little small kind happy brave clever shy young curious quiet funny cheerful".split()
COLOURS = "red blue green yellow white black pink brown purple".split()
TOYS = "ball,kite,doll,toy car,toy boat,hat,book,drum,teddy bear,toy train,scarf,bell,bucket,top"
TOYS = TOYS.split(",")
SHARED = ["ball", "kite", "toy car", "toy boat", "drum", "toy train", "swing", "bike", "scooter"]
FOODS = ["apples", "cookies", "cherries", "sandwiches", "pears", "carrots", "nuts", "buns"]
HELPERS = [("mom", "she"), ("dad", "he"), ("grandma", "she"), ("grandpa", "he")]
LOST_PETS = ["kitten", "puppy", "bird", "lamb", "duckling", "bunny"]

Place = namedtuple("Place", "name at spots sights")
PLACES = [
    Place(
        "park",
        "in the park",
        ["under a bench", "behind a big tree", "in the tall grass", "near the swings"],
        ["birds in the trees", "a dog with a stick", "children on the swings"],
    ),
    Place(
        "beach",
        "at the beach",
        ["in the sand", "behind a rock", "under a towel", "next to a sand castle"],
        ["the blue waves", "white shells", "a small crab"],
    ),
    Place(
        "lake",
        "by the lake",
        ["under a boat", "behind a rock", "in the reeds", "near the water"],
        ["ducks on the water", "a silver fish", "a green frog"],
    ),
    Place(
        "forest",
        "in the forest",
        ["under a bush", "behind a log", "in a pile of leaves", "at the foot of a tree"],
        ["tall trees", "a sleepy owl", "a family of deer"],
    ),
    Place(
        "garden",
        "in the garden",
        ["under a bush", "behind the shed", "among the flowers", "beside the gate"],
        ["bees on the flowers", "a yellow butterfly", "a slow snail"],
    ),
    Place(
        "farm",
        "on the farm",
        ["under a cart", "in the hay", "behind the barn", "next to the fence"],
        ["brown cows", "fat pigs", "hens in the yard"],
    ),
    Place(
        "meadow",
        "in the meadow",
        ["in the tall grass", "behind a stone wall", "among the flowers", "under a tree"],
        ["white sheep", "a yellow butterfly", "a brown horse"],
    ),
]

# What is made: name, what goes into it, how it is made, what is done with it.
Craft = namedtuple("Craft", "thing parts steps use")
CRAFTS = [
    Craft(
        "cake",
        "flour, eggs and sugar",
        ["mixed them in a big bowl", "put the cake in the oven"],
        "ate it with cold milk",
    ),
    Craft(
        "soup",
        "carrots, peas and salt",
        ["cut them with care", "cooked the soup in a big pot"],
        "ate it with warm bread",
    ),
    Craft(
        "pie",
        "apples, butter and flour",
        ["rolled the dough flat", "baked the pie until it was brown"],
        "ate it by the window",
    ),
    Craft(
        "kite",
        "paper, sticks and string",
        ["tied the sticks together", "glued the paper on top"],
        "flew it high in the sky",
    ),
    Craft(
        "boat",
        "wood, nails and cloth",
        ["nailed the wood together", "made a sail from the cloth"],
        "sailed it on the pond",
    ),
    Craft(
        "bird house",
        "wood, nails and paint",
        ["nailed the boards together", "painted it with bright colours"],
        "hung it in the tree",
    ),
    Craft(
        "snowman",
        "snow, stones and a carrot",
        ["rolled three big balls of snow", "gave it a carrot for a nose"],
        "danced around it",
    ),
]

# What is feared: the deed, where, why, the advice, what it was like at last.
Fear = namedtuple("Fear", "deed at why advice end")
FEARS = [
    Fear(
        "swim",
        "at the lake",
        "The water was deep and cold",
        "Just kick your feet and breathe",
        "the water felt soft and cool",
    ),
    Fear(
        "climb the tree",
        "in the garden",
        "The tree was very tall",
        "Just take one branch at a time",
        "the whole village looked small from the top",
    ),
    Fear(
        "ride the bike",
        "in the park",
        "The bike was big and fast",
        "Just look ahead and keep going",
        "the wind felt good on the way down",
    ),
    Fear(
        "sleep in the dark",
        "at home",
        "The room was black and still",
        "Just count the stars and hold my hand",
        "the dark was only quiet and warm",
    ),
    Fear(
        "go down the slide",
        "in the park",
        "The slide was high and steep",
        "Just sit down and let go",
        "it was the best ride of all",
    ),
    Fear(
        "sing on the stage",
        "at school",
        "All the people were looking",
        "Just sing the song to me",
        "everyone clapped and cheered",
    ),
    Fear(
        "cross the bridge",
        "in the forest",
        "The bridge was long and thin",
        "Just look at me and walk slowly",
        "the other side was full of flowers",
    ),
]

# What breaks: the thing, how, the tool that mends it.
BREAKS = [
    ("chair", "One leg was loose", "a hammer and a nail"),
    ("kite", "The paper was torn", "some glue and tape"),
    ("toy boat", "There was a hole in it", "some wood and glue"),
    ("bike", "One wheel was bent", "a big wrench"),
    ("teddy bear", "One arm had come off", "a needle and thread"),
    ("fence", "Two boards were broken", "a hammer and nails"),
    ("cart", "One wheel had come off", "a rope and a big wrench"),
    ("coat", "One sleeve was torn", "a needle and thread"),
]

# Where an animal is stuck, and how it is freed.
TRAPS = [
    ("in a tall tree", "found a ladder and climbed up"),
    ("in a deep hole", "lay down and reached into the hole"),
    ("under a fence", "lifted the fence with both hands"),
    ("in a thorn bush", "pushed the thorns away with a stick"),
    ("on a rock in the stream", "put a plank across the water"),
]

PLANTS = [
    ("sunflower", "yellow and taller than the fence"),
    ("pumpkin", "round and very big"),
    ("tomato plant", "full of sweet red tomatoes"),
    ("pear tree", "strong and full of sweet pears"),
    ("rose", "soft and red"),
    ("bean plant", "long and green"),
]

WISHES = [
    ("star", "The sky was full of stars"),
    ("moon", "The moon was big and round"),
    ("rainbow", "The rain had just stopped"),
    ("snow", "The first snow was falling"),
]
